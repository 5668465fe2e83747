//! Tiers: premium over standard over basic, and basic gives way.

use super::home;
use towline_testkit::until;

#[test]
fn basic_gives_way_and_comes_back_as_its_next_attempt() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let script = "echo attempt $TOW_ATTEMPT; touch running-$TOW_ATTEMPT; [ $TOW_ATTEMPT = 2 ] || \
        { trap 'echo saved; exit 0' TERM; sleep 1000 & wait; }";
    let basic = home.tow(["submit", "--tier", "basic", script]).ok().id();
    until("the basic run", || {
        home.project().join("running-1").exists().then_some(())
    });
    let standard = home.tow(["submit", "sh", "-c", "echo here"]).ok().id();
    home.tow(["wait", &standard]).ok();
    home.tow(["wait", &basic]).ok();
    let run = home.show(&basic);
    assert_eq!(run["attempt"], 2);
    assert_eq!(run["attempts"][0]["reason"], "preempted");
    assert_eq!(
        home.tow(["logs", &basic]).stdout,
        "attempt 1\nsaved\nattempt 2\n",
        "both logs are kept, and it had its grace"
    );
    let preempted = run["attempts"][0]["ended"].as_str().unwrap().to_owned();
    assert!(home.show(&standard)["started"].as_str().unwrap() >= preempted.as_str());
}

#[test]
fn standard_is_never_evicted_and_premium_goes_first() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let holder = home
        .tow([
            "submit",
            "sh",
            "-c",
            "while [ ! -e go ]; do sleep 0.01; done; echo holder >> order",
        ])
        .ok()
        .id();
    home.wait_for_state(&holder, "running");
    let mut runs = Vec::new();
    for tier in ["basic", "standard", "premium", "standard"] {
        runs.push(
            home.tow(["submit", "--tier", tier, &format!("echo {tier} >> order")])
                .ok()
                .id(),
        );
    }
    assert_eq!(home.state_of(&holder), "running");
    home.write("go", "");
    for run in &runs {
        home.tow(["wait", run]).ok();
    }
    assert_eq!(
        home.read("order"),
        "holder\npremium\nstandard\nstandard\nbasic\n"
    );
    assert_eq!(home.show(&holder)["attempt"], 1);
}

#[test]
fn a_small_run_fills_a_hole_only_if_it_cannot_delay_the_head() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 4, gpus: 2}\n");
    let holder = home
        .tow([
            "submit",
            "-n",
            "1",
            "sh",
            "-c",
            "while [ ! -e go ]; do sleep 0.01; done",
        ])
        .ok()
        .id();
    home.wait_for_state(&holder, "running");
    let head = home
        .tow(["submit", "-n", "2", "sh", "-c", "echo head >> order"])
        .ok()
        .id();
    // It would take the GPU that the head needs as soon as the holder ends.
    let greedy = home
        .tow(["submit", "-n", "1", "sh", "-c", "echo greedy >> order"])
        .ok()
        .id();
    // It needs no GPU, and there are CPUs for both.
    let modest = home
        .tow(["submit", "sh", "-c", "echo modest >> order"])
        .ok()
        .id();
    home.tow(["wait", &modest]).ok();
    assert_eq!(home.read("order"), "modest\n");
    let why = home.tow(["why", &greedy]).ok().stdout;
    assert!(why.contains("could delay"), "{why}");
    home.write("go", "");
    home.tow(["wait", &head, &greedy]).ok();
    assert_eq!(home.read("order"), "modest\nhead\ngreedy\n");
}
