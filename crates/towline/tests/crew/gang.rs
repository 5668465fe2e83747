//! Several nodes: one leads, all begin and end together.

use crate::lab::Lab;
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use towline_core::job::RetryPolicy;
use towline_core::reason::Cause;
use towline_testkit::until;
use towline_wire::crew::{FromNode, SharedToken};
use towline_wire::frame;

#[test]
fn all_ranks_know_their_place() {
    let lab = Lab::new(
        "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK \
        $MASTER_ADDR:$MASTER_PORT $AZ_BATCH_HOST_LIST",
    )
    .on(2, 2);
    assert_eq!(
        lab.all(),
        [0, 0],
        "{}{}",
        lab.read("stderr-0"),
        lab.read("stderr-1")
    );
    assert_eq!(lab.causes(), [None]);
    let claim = lab.attempts()[0].claim.clone().unwrap();
    assert_eq!(claim.hosts, ["127.0.0.1", "127.0.0.1"]);
    assert_ne!(claim.port, lab.port(), "ours is taken");
    for rank in 0..4 {
        let said = lab.text(&format!("attempt-1.rank-{rank}"));
        let hosts = claim.hosts.join(",");
        assert_eq!(
            said,
            format!(
                "{rank}/4 {}/2 {} 127.0.0.1:{} {hosts}\n",
                rank % 2,
                rank / 2,
                claim.port
            )
        );
    }
    assert_eq!(
        lab.read("stdout-1"),
        lab.text("attempt-1.rank-2"),
        "the first rank of that node"
    );
}

#[test]
fn a_failure_on_one_node_ends_the_others_with_its_code() {
    let lab = Lab::new("[ $RANK = 1 ] && exit 9; echo here; exec sleep 300").on(3, 1);
    assert_eq!(lab.all(), [9, 9, 9]);
    let ending = &lab.endings()[0];
    assert_eq!(
        (ending.cause, ending.first_failure.as_ref().unwrap().rank),
        (Some(Cause::ExitCode), 1)
    );
    lab.nothing_is_alive();
}

#[test]
fn all_nodes_begin_the_next_attempt() {
    let lab = Lab::new("echo $TOW_ATTEMPT $MASTER_PORT; [ $TOW_ATTEMPT = 2 ] || [ $RANK = 0 ]")
        .on(2, 1)
        .with(|resolved| {
            resolved.retry = Some(RetryPolicy {
                when: vec![Cause::ExitCode],
                max: Some(2),
            });
        });
    assert_eq!(lab.all(), [0, 0]);
    assert_eq!(lab.causes(), [Some(Cause::ExitCode), None]);
    let port = lab.attempts()[1].claim.as_ref().unwrap().port;
    for rank in 0..2 {
        assert_eq!(
            lab.text(&format!("attempt-2.rank-{rank}")),
            format!("2 {port}\n")
        );
    }
    assert_eq!(
        lab.all(),
        [0, 0],
        "all nodes of a start that finds nothing to do leave"
    );
    assert_eq!(lab.attempts().len(), 2);
}

#[test]
fn nothing_runs_before_all_have_come_and_a_stranger_is_not_served() {
    let lab = Lab::new("echo $RANK").on(2, 1);
    let leader = lab.start(0);
    let mut stranger = until("the leader to listen", || {
        TcpStream::connect(("127.0.0.1", lab.port())).ok()
    });
    let wrong = FromNode::Here {
        shared_token: SharedToken::new("another token"),
        node: 1,
        host: "127.0.0.1".into(),
    };
    stranger.write_all(&frame::encode(&wrong)).unwrap();
    let mut answer = Vec::new();
    let ended = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{ended:?}: {answer:?}");
    let mut rambler = TcpStream::connect(("127.0.0.1", lab.port())).unwrap();
    rambler.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = rambler.read_to_end(&mut answer);
    assert!(answer.is_empty() && lab.news().is_none() && !lab.path("stage/logs").exists());
    let follower = lab.start(1);
    assert_eq!((leader.code(), follower.code()), (0, 0));
}

#[test]
fn a_follower_that_is_killed_fails_the_attempt() {
    for whole in [true, false] {
        let lab = Lab::new("touch \"$LAB/up-$RANK\"; exec sleep 300").on(2, 1);
        let (leader, follower) = (lab.start(0), lab.start(1));
        lab.until_there("up-0");
        lab.until_there("up-1");
        towline_host::process::signal(
            if whole {
                follower.pid()
            } else {
                follower.runner()
            },
            Signal::KILL,
        );
        assert_eq!(follower.code(), if whole { 137 } else { 1 });
        assert_eq!(leader.code(), 1);
        lab.nothing_is_alive();
        let ending = &lab.endings()[0];
        assert_eq!(ending.cause, Some(Cause::NodeFailed));
        assert!(
            ending.detail.as_ref().unwrap().contains("node 1"),
            "{ending:?}"
        );
        assert!(lab.is_concluded());
    }
}

/// One node of several is taken away without a word, and the service starts the job anew on others:
/// it goes on.
#[test]
fn a_job_that_lost_a_node_goes_on_when_it_is_started_anew() {
    let lab =
        Lab::new("touch \"$LAB/up-$TOW_ATTEMPT-$RANK\"; [ $TOW_ATTEMPT = 2 ] || exec sleep 300")
            .on(2, 1);
    let (leader, follower) = (lab.start(0), lab.start(1));
    lab.until_there("up-1-0");
    lab.until_there("up-1-1");
    towline_host::process::signal(follower.pid(), Signal::KILL);
    assert_eq!((follower.code(), leader.code()), (137, 1));
    lab.nothing_is_alive();
    assert_eq!(lab.all(), [0, 0]);
    assert_eq!(lab.causes(), [Some(Cause::Preempted), None]);
}

#[test]
fn a_leader_that_is_killed_ends_the_others() {
    for whole in [true, false] {
        let lab = Lab::new("touch \"$LAB/up-$RANK\"; exec sleep 300").on(2, 1);
        let (leader, follower) = (lab.start(0), lab.start(1));
        lab.until_there("up-0");
        lab.until_there("up-1");
        towline_host::process::signal(
            if whole { leader.pid() } else { leader.runner() },
            Signal::KILL,
        );
        assert_eq!(leader.code(), if whole { 137 } else { 1 });
        // Who was ours to hear may have had the time to say that it is over.
        assert_eq!(follower.code(), 1);
        lab.nothing_is_alive();
        until("the end to be told", || lab.attempts()[0].end.clone());
        assert_eq!(lab.causes(), [Some(Cause::NodeFailed)]);
    }
}

#[test]
fn a_node_that_has_no_rank_waits_for_the_one_that_has() {
    let lab = Lab::new("echo only $RANK/$WORLD_SIZE")
        .on(2, 1)
        .with(|resolved| resolved.shape.once = true);
    assert_eq!(lab.all(), [0, 0]);
    assert_eq!(lab.text("attempt-1.rank-0"), "only 0/1\n");
    assert_eq!(fs::read_dir(lab.path("stage/logs")).unwrap().count(), 1);
}
