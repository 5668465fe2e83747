//! `tow hold` and `tow resume`: queued runs that do not start until they may.

use super::{busy_home, ended, gate, home, home_with_gpus, runs};

#[test]
fn a_run_on_hold_stays_in_the_queue_until_it_is_resumed() {
    let (home, holder) = busy_home();
    let run = home.tow(["submit", "true"]).ok().id();
    let held = home.tow(["hold", &run]).ok();
    assert_eq!(held.stdout, format!("{run} on hold\n"));
    assert!(held.stderr.contains("tow resume"), "{}", held.stderr);
    assert_eq!(
        home.tow(["hold", &run]).ok().stdout,
        held.stdout,
        "twice is once"
    );
    // On disk, not only in the daemon's memory.
    assert!(home.kill_daemon());
    home.tow(["abort", &holder, "--wait"]).ok();
    // There is room, and what came later goes before it.
    ended(&home, &["true"]);
    let shown = home.show(&run);
    assert_eq!(
        (&shown["state"], &shown["on_hold"]),
        (&"queued".into(), &true.into())
    );
    assert!(home.tow(["ps"]).ok().stdout.contains("queued, on hold"));
    let why = home.tow(["why", &run]).ok().stdout;
    assert!(why.contains("it is on hold; `tow resume"), "{why}");
    assert_eq!(
        home.tow(["resume", &run]).ok().stdout,
        format!("{run} may start\n")
    );
    assert_eq!(home.tow(["wait", &run]).code, 0);
    assert!(home.show(&run).get("on_hold").is_none());
    assert_eq!(home.show(&run)["attempt"], 1);
}

#[test]
fn what_runs_or_has_ended_cannot_be_held() {
    let (home, holder) = busy_home();
    let old = home.tow(["submit", "--name", "old", "true"]).ok().id();
    home.tow(["abort", &old, "--wait"]).ok();
    for (run, words) in [(&holder, "runs already"), (&old, "has ended")] {
        let refused = home.tow(["hold", run]);
        assert_eq!(refused.code, 123, "{refused:?}");
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        let refused = home.tow(["hold", run, "--json"]);
        let error: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
        assert_eq!(error["refusal"], "conflict");
    }
    assert_eq!(home.tow(["hold", "nosuch"]).code, 122);
    assert_eq!(home.tow(["hold"]).code, 120);
    assert_eq!(home.state_of(&holder), "running");
    // One that cannot be held does not keep others from it.
    let run = home.tow(["submit", "true"]).ok().id();
    let both = home.tow(["hold", &run, &holder, "--json"]).ok().json();
    assert_eq!(both["changed"], serde_json::json!([run]));
    assert_eq!(both["unchanged"][0]["id"], holder.as_str());
}

#[test]
fn of_a_sweep_what_waits_is_held() {
    let home = home_with_gpus();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let command = gate("go");
    let sweep = home.tow(["submit", "--sweep", "a=1-3", "sh", "-c", &command]);
    let sweep = sweep.ok().id();
    home.wait_for_state(&format!("{sweep}-1"), "running");
    let held = home.tow(["hold", &sweep, "--json"]).ok().json();
    assert_eq!(held["changed"].as_array().unwrap().len(), 2, "{held}");
    home.write("go", "");
    home.wait_for_state(&format!("{sweep}-1"), "succeeded");
    ended(&home, &["true"]);
    let waiting = runs(&home, &["--state", "queued"]);
    assert_eq!(waiting.len(), 2);
    home.tow(["resume", &format!("{sweep}-3")]).ok();
    home.wait_for_state(&format!("{sweep}-3"), "succeeded");
    assert_eq!(home.state_of(&format!("{sweep}-2")), "queued");
    home.tow(["abort", &sweep, "--wait"]).ok();
    assert_eq!(home.state_of(&format!("{sweep}-2")), "cancelled");
}

#[test]
fn a_run_can_wait_for_another_and_be_on_hold() {
    let home = home();
    let first = home.tow(["submit", "sh", "-c", &gate("go")]).ok().id();
    let second = home.tow(["submit", "--after", &first, "true"]).ok().id();
    home.tow(["hold", &second]).ok();
    home.write("go", "");
    home.wait_for_state(&first, "succeeded");
    ended(&home, &["true"]);
    assert_eq!(home.state_of(&second), "queued");
    home.tow(["resume", &second]).ok();
    assert_eq!(home.tow(["wait", &second]).code, 0);
}
