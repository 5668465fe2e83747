//! Time, memory, retries, grace.

use super::home;
use std::time::Instant;
use towline_testkit::{ability, until};

#[test]
fn the_time_limit_ends_an_attempt_and_says_so() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "--time",
            "1s",
            "sh",
            "-c",
            "trap 'echo warned; exit 0' TERM; sleep 1000 & wait",
        ])
        .ok()
        .id();
    assert_eq!(home.tow(["wait", &id]).code, 1);
    let run = home.show(&id);
    assert_eq!(
        (run["state"].as_str(), run["reason"].as_str()),
        (Some("failed"), Some("time_limit"))
    );
    assert_eq!(
        home.tow(["logs", &id]).stdout,
        "warned\n",
        "SIGTERM comes first"
    );
    assert!(home.tow(["why", &id]).stdout.contains("--time"));
}

#[test]
fn who_ignores_sigterm_is_killed_after_the_grace() {
    let home = home().with("TOW_GRACE_MILLIS", "300");
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "trap '' TERM; touch ready; while :; do sleep 0.05; done",
        ])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("ready").exists().then_some(())
    });
    let begun = Instant::now();
    home.tow(["abort", &id, "--wait"]).ok();
    assert!(begun.elapsed().as_millis() >= 250, "the grace was given");
    assert_eq!(home.state_of(&id), "cancelled");
    assert_eq!(home.show(&id)["exit_code"], 143);
}

#[test]
fn retries_follow_the_reasons_named_and_stop_at_max() {
    let home = home();
    home.write(
        "job.yaml",
        "command: 'echo $TOW_ATTEMPT >> tries; exit 4'\nretry: {when: [exit_code], max: 3}\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    assert_eq!(home.tow(["wait", &id]).code, 4);
    assert_eq!(home.read("tries"), "1\n2\n3\n");
    let run = home.show(&id);
    assert_eq!(
        (
            run["attempt"].as_i64(),
            run["attempts"].as_array().unwrap().len()
        ),
        (Some(3), 3)
    );
    home.write(
        "other.yaml",
        "command: 'echo once >> other; exit 4'\nretry: {when: [node_failed, signal], max: 3}\n",
    );
    let id = home.tow(["submit", "-f", "other.yaml"]).ok().id();
    assert_eq!(home.tow(["wait", &id]).code, 4);
    assert_eq!(home.read("other"), "once\n");
}

#[test]
fn memory_is_enforced_where_cgroups_are_delegated() {
    let home = home();
    let hog = "import time\ndata = []\nfor _ in range(200):\n    data.append(bytearray(8 << 20)); \
        data[-1][::4096] = b'x' * len(data[-1][::4096])\n";
    home.write("hog.py", hog);
    let id = home
        .tow(["submit", "--memory", "64M", "python3", "hog.py"])
        .ok()
        .id();
    let waited = home.tow(["wait", &id]);
    let run = home.show(&id);
    if !ability::may_limit_memory() {
        // Counted only, which `docs/concepts/local-cluster.md` says.
        assert_eq!(run["state"], "succeeded");
        return ability::not_run(
            "memory limits, for control groups are not delegated to this user",
        );
    }
    assert_eq!(
        (waited.code, run["reason"].as_str()),
        (137, Some("out_of_memory")),
        "{run}"
    );
    assert!(home.tow(["why", &id]).stdout.contains("memory"));
}

#[test]
fn a_cancelled_queued_run_never_starts() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let first = home
        .tow([
            "submit",
            "sh",
            "-c",
            "while [ ! -e go ]; do sleep 0.01; done",
        ])
        .ok()
        .id();
    let second = home.tow(["submit", "sh", "-c", "touch ran"]).ok().id();
    home.wait_for_state(&first, "running");
    let why = home.tow(["why", &second]).ok().stdout;
    assert!(why.contains("1 CPU") && why.contains("held by"), "{why}");
    home.tow(["abort", &second, "--wait"]).ok();
    home.write("go", "");
    home.tow(["wait", &first]).ok();
    assert_eq!(home.state_of(&second), "cancelled");
    assert!(!home.project().join("ran").exists());
}
