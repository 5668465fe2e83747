//! A daemon that does not answer keeps nobody waiting.

use super::home;
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};
use towline_host::process;
use towline_testkit::{Home, Output, until, until_within};

/// Longer than any verb may wait for a daemon that shows no sign of life.
const LONGEST: Duration = Duration::from_secs(45);

fn stopped(home: &Home) -> i32 {
    let pid = home.daemon().unwrap();
    process::signal(pid, Signal::STOP);
    pid
}

fn finished(child: Child) -> Output {
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_stopped_daemon_is_named_and_hangs_nothing() {
    let home = home();
    let id = home.tow(["submit", "true"]).ok().id();
    home.tow(["wait", &id]).ok();
    let running = home.tow(["submit", "sleep", "300"]).ok().id();
    home.wait_for_state(&running, "running");
    let pid = stopped(&home);
    // What is on disk needs nobody.
    let begun = Instant::now();
    for words in [
        &["ps"][..],
        &["show", &id],
        &["logs", &id],
        &["why", &id],
        &["history"],
        &["wait", &id],
        &["wait", &id, "--timeout", "3s"],
    ] {
        home.tow(words).ok();
    }
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "reading took {:?}",
        begun.elapsed()
    );
    let late = home.tow(["wait", &running, "--timeout", "1s"]);
    assert_eq!(late.code, 124, "{late:?}");
    // All others leave by themselves, with the process and what to do.
    let asked: [&[&str]; 7] = [
        &["submit", "true"],
        &["resubmit", &id],
        &["abort", &running],
        &["nodes"],
        &["doctor"],
        &["daemon", "status"],
        &["wait", &running],
    ];
    let begun = Instant::now();
    let children: Vec<Child> = asked.iter().map(|words| home.spawn(*words)).collect();
    for (words, child) in asked.iter().zip(children) {
        let output = finished(child);
        assert_eq!(output.code, 125, "{words:?}: {output:?}");
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(
            said.contains(&format!("process {pid}")) && said.contains("tow daemon stop"),
            "{words:?}: {said}"
        );
    }
    assert!(begun.elapsed() < LONGEST, "it took {:?}", begun.elapsed());
    // It is ended although it hears nothing, and the run goes on.
    assert_eq!(
        home.tow(["daemon", "stop", "--json"]).ok().json(),
        json!({"stopped": true, "ended": pid})
    );
    assert_eq!(home.state_of(&running), "running");
    home.tow(["run", "true"]).ok();
    assert_ne!(home.daemon(), Some(pid));
}

/// Whoever was told that the daemon does not answer has submitted nothing.
#[test]
fn a_submission_that_was_given_up_does_not_come_back() {
    let home = home();
    home.tow(["run", "true"]).ok();
    let pid = stopped(&home);
    let output = home.tow(["submit", "touch", "given-up"]);
    assert!(
        output.code == 125 && output.stderr.contains("tow ps"),
        "{output:?}"
    );
    process::signal(pid, Signal::CONT);
    // It takes questions in their order.
    until("it to answer again", || home.daemon());
    home.tow(["run", "true"]).ok();
    assert_eq!(
        home.tow(["ps", "--json"]).json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(!home.project().join("given-up").exists());
}

#[test]
fn a_wait_that_is_no_blink_is_told() {
    let home = home();
    home.tow(["run", "true"]).ok();
    let pid = stopped(&home);
    let mut child = home.spawn(["nodes"]);
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(
        line.contains("waiting for") && line.contains(&format!("process {pid}")),
        "{line}"
    );
    process::signal(pid, Signal::CONT);
    assert!(
        child.wait().unwrap().success(),
        "it answers, and all is well"
    );
}

/// Also when it hangs after it was asked.
#[test]
fn whoever_follows_a_run_is_told_that_the_daemon_hangs() {
    let home = home();
    let id = home
        .tow(["submit", "sh", "-c", "echo up; sleep 300"])
        .ok()
        .id();
    let mut follower = home.spawn(["logs", "-f", &id]);
    // It asks the daemon before it shows a line.
    let mut stdout = BufReader::new(follower.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let pid = stopped(&home);
    let output = finished(follower);
    assert!(
        output.code == 125
            && output.stderr.contains(&format!("process {pid}"))
            && output.stderr.contains("goes on"),
        "{output:?}"
    );
}

/// Its own limits leave it without a file descriptor: it says so, is seen, and can be ended.
#[test]
fn a_daemon_without_descriptors_is_seen_and_says_so() {
    let home = home();
    let tow = home.binary().display().to_string();
    let as_usual = home.command([""; 0]);
    let submit_with = |limit: u32| {
        let mut shell = std::process::Command::new("sh");
        shell
            .args([
                "-c",
                &format!("ulimit -n {limit}; exec {tow} submit sleep 300"),
            ])
            .current_dir(home.project())
            .env_clear();
        shell
            .envs(
                as_usual
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .output()
            .unwrap();
    };
    let begun = Instant::now();
    let mut is_felt = false;
    for limit in [12, 14, 16, 18, 20, 22] {
        submit_with(limit);
        let lock = home.state().daemon_lock();
        // From a shell that has enough: answered, refused with words, or nobody is there, as the
        // lock says.
        let status = home.tow(["daemon", "status"]);
        if towline_host::lock::is_held(&lock).unwrap() {
            assert!(
                !status.stdout.contains("no daemon is running"),
                "{status:?}"
            );
        }
        assert!(
            status.code == 0 || status.code == 125 && status.stderr.contains("process "),
            "{status:?}"
        );
        for words in [&["submit", "true"][..], &["nodes"], &["doctor"]] {
            let output = home.tow(words);
            assert!(
                matches!(output.code, 0 | 123 | 125),
                "{words:?}: {output:?}"
            );
            is_felt |= output.code != 0;
        }
        is_felt |= status.code != 0;
        home.tow(["daemon", "stop"]).ok();
        until_within(20, "it to be gone", || {
            (!towline_host::lock::is_held(&lock).unwrap()).then_some(())
        });
        let log = std::fs::read_to_string(home.state().daemon_log()).unwrap_or_default();
        assert!(log.lines().count() < 100, "the log is flooded:\n{log}");
    }
    assert!(is_felt, "no limit was so low that anybody felt it");
    assert!(
        begun.elapsed() < Duration::from_secs(240),
        "it took {:?}",
        begun.elapsed()
    );
}
