//! A job that the service ends, and starts anew.

use crate::lab::Lab;
use rustix::process::Signal;
use std::fs;
use towline_core::job::RetryPolicy;
use towline_core::reason::Cause;
use towline_testkit::until;

/// Tells what it heard, and ends only by itself.
const PATIENT: &str = r#"
    trap 'echo told >> "$LAB/told"; exit 0' TERM
    touch "$LAB/up-$TOW_ATTEMPT-$RANK"
    [ $TOW_ATTEMPT = 2 ] && exit 0
    while :; do sleep 0.02; done"#;

#[test]
fn a_preempted_run_goes_on_when_it_is_started_anew() {
    let lab = Lab::new(PATIENT);
    let first = lab.start(0);
    lab.until_there("up-1-0");
    first.signal(Signal::TERM);
    assert_eq!(first.code(), 143);
    assert_eq!(
        (lab.causes(), lab.read("told").as_str()),
        (vec![Some(Cause::Preempted)], "told\n")
    );
    assert!(!lab.path("stage/news.json").exists(), "it is not over");
    assert_eq!(lab.all(), [0]);
    assert_eq!(lab.causes(), [Some(Cause::Preempted), None]);
    let restarts: Vec<u32> = lab
        .attempts()
        .iter()
        .map(|report| report.claim.as_ref().unwrap().by.restarts)
        .collect();
    assert_eq!(restarts, [0, 1]);
    assert!(lab.is_concluded());
    assert_eq!(lab.all(), [0], "once more: nothing is begun");
    assert_eq!(lab.attempts().len(), 2);
}

#[test]
fn a_signal_to_all_of_our_processes_reaches_the_ranks_once() {
    let lab = Lab::new(PATIENT);
    let node = lab.start(0);
    lab.until_there("up-1-0");
    towline_host::process::signal(node.runner(), Signal::TERM);
    node.signal(Signal::TERM);
    assert_eq!(node.code(), 143);
    assert_eq!(
        (lab.causes(), lab.read("told").as_str()),
        (vec![Some(Cause::Preempted)], "told\n")
    );
}

#[test]
fn a_cancelled_run_is_over() {
    let lab = Lab::new(PATIENT);
    let node = lab.start(0);
    lab.until_there("up-1-0");
    fs::write(lab.path("stage/cancel"), "").unwrap();
    node.signal(Signal::TERM);
    assert_eq!(node.code(), 143);
    assert_eq!(lab.causes(), [Some(Cause::ByUser)]);
    assert!(lab.is_concluded());
    assert_eq!(lab.all(), [143], "and stays so");
    assert_eq!(lab.attempts().len(), 1);
}

#[test]
fn a_run_that_was_cancelled_before_it_began_never_does() {
    let lab = Lab::new("touch \"$LAB/began\"");
    fs::write(lab.path("stage/cancel"), "").unwrap();
    assert_eq!(lab.all(), [143]);
    assert_eq!(
        (lab.attempts()[0].attempt, lab.causes()),
        (0, vec![Some(Cause::ByUser)])
    );
    assert!(!lab.path("began").exists());
}

#[test]
fn ranks_that_do_not_listen_are_killed_after_the_grace() {
    let mut lab = Lab::new("trap '' TERM; touch \"$LAB/up\"; while :; do sleep 0.02; done");
    lab.order.grace_millis = 300;
    let node = lab.start(0);
    lab.until_there("up");
    assert!(!lab.alive().is_empty(), "a rank that runs is seen");
    node.signal(Signal::TERM);
    assert_eq!(node.code(), 143);
    assert_eq!(lab.causes(), [Some(Cause::Preempted)]);
    lab.nothing_is_alive();
}

#[test]
fn all_nodes_of_a_preempted_job_leave_and_come_again() {
    // The service tells all of them, or any one first.
    for told in [&[0, 1][..], &[1, 0], &[1], &[0]] as [&[usize]; 4] {
        let lab = Lab::new(PATIENT).on(2, 1);
        let nodes = [lab.start(0), lab.start(1)];
        lab.until_there("up-1-0");
        lab.until_there("up-1-1");
        for node in told {
            nodes[*node].signal(Signal::TERM);
        }
        let codes = nodes.map(crate::lab::Node::code);
        assert_eq!(
            (codes, lab.causes()),
            ([143, 143], vec![Some(Cause::Preempted)]),
            "{told:?}"
        );
        assert_eq!(
            lab.read("told"),
            "told\ntold\n",
            "{told:?}: each rank heard it once"
        );
        assert_eq!(lab.all(), [0, 0], "{told:?}");
        assert_eq!(lab.causes(), [Some(Cause::Preempted), None], "{told:?}");
    }
}

#[test]
fn nodes_that_wait_for_each_other_leave_when_told() {
    let lab = Lab::new("true").on(2, 1);
    let leader = lab.start(0);
    until("the leader to listen", || {
        std::net::TcpStream::connect(("127.0.0.1", lab.port())).ok()
    });
    leader.signal(Signal::TERM);
    assert_eq!(leader.code(), 143);
    assert!(lab.news().is_none(), "nothing was begun");
    let follower = lab.start(1);
    follower.runner();
    follower.signal(Signal::TERM);
    assert_eq!(follower.code(), 143);
}

#[test]
fn an_attempt_that_a_dead_start_left_open_was_preempted() {
    let lab = Lab::new(PATIENT);
    let node = lab.start(0);
    lab.until_there("up-1-0");
    until("its start to be told", || {
        lab.attempts().first()?.started.clone()
    });
    // The machine is gone, with all that was on it.
    assert!(!lab.alive().is_empty(), "a rank that runs is seen");
    let runner = node.runner();
    towline_host::process::signal(node.pid(), Signal::STOP);
    towline_host::process::signal(runner, Signal::KILL);
    node.signal(Signal::KILL);
    assert_eq!(node.code(), 137);
    for pid in lab.alive() {
        towline_host::process::signal(pid, Signal::KILL);
    }
    assert!(lab.attempts()[0].end.is_none());
    assert_eq!(lab.all(), [0]);
    let endings = lab.endings();
    assert_eq!(
        (endings[0].cause, endings[0].detail.as_deref()),
        (Some(Cause::Preempted), Some("the cluster restarted it"))
    );
    assert_eq!(endings.len(), 2);
}

#[test]
fn a_runner_that_is_killed_leaves_nothing_and_says_so() {
    let lab = Lab::new(PATIENT).with(|resolved| {
        resolved.retry = Some(RetryPolicy {
            when: vec![Cause::NodeFailed],
            max: Some(2),
        });
    });
    let node = lab.start(0);
    lab.until_there("up-1-0");
    towline_host::process::signal(node.runner(), Signal::KILL);
    let said = node.stderr();
    assert_eq!(node.code(), 1, "{said}");
    lab.nothing_is_alive();
    assert_eq!(lab.causes(), [Some(Cause::NodeFailed)]);
    assert_eq!(lab.all(), [0], "the next start goes on, by the rule");
    assert_eq!(lab.causes(), [Some(Cause::NodeFailed), None]);
}
