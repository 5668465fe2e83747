//! `tow edit`: the tier, the time limit and the size of a run that waits.

use super::{Home, busy_home, ended, home_with_gpus, runs};
use towline_testkit::until;

/// A machine of two GPUs, all taken.
fn taken() -> (Home, String) {
    let home = home_with_gpus();
    let holder = home.tow(["submit", "-n", "2", "sleep", "300"]).ok().id();
    home.wait_for_state(&holder, "running");
    (home, holder)
}

#[test]
fn a_run_that_waits_gets_another_size_and_starts_with_it() {
    let (home, holder) = taken();
    let print = "echo world $WORLD_SIZE gpus $CUDA_VISIBLE_DEVICES";
    let run = home
        .tow(["submit", "-n", "1", "--launch", "per_gpu", print])
        .ok()
        .id();
    let edited = home.tow(["edit", &run, "-n", "2", "--time", "1h"]).ok();
    assert_eq!(edited.stdout, format!("{run} changed\n"));
    let shown = home.show(&run);
    assert_eq!((&shown["gpus"], &shown["ranks"]), (&2.into(), &2.into()));
    // On disk, not only in the daemon's memory.
    assert!(home.kill_daemon());
    home.tow(["abort", &holder, "--wait"]).ok();
    assert_eq!(home.tow(["wait", &run]).code, 0);
    let log = home.tow(["logs", &run, "--rank", "0"]).ok().stdout;
    assert_eq!(log.trim(), "world 2 gpus 0,1");
    // The same again has the same size.
    let again = home.tow(["resubmit", &run, "--json"]).ok().json();
    let again = again["resubmitted"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(home.tow(["wait", &again]).code, 0);
    let shown = home.show(&again);
    assert_eq!(shown["gpus"], 2);
    assert_eq!(shown["job"]["resources"]["time"], "1h");
}

#[test]
fn a_smaller_run_starts_at_once() {
    let home = home_with_gpus();
    home.tow(["submit", "-n", "1", "sleep", "300"]).ok();
    let run = home.tow(["submit", "-n", "2", "true"]).ok().id();
    until("it to wait", || {
        (home.state_of(&run) == "queued").then_some(())
    });
    home.tow(["edit", &run, "-n", "1"]).ok();
    assert_eq!(home.tow(["wait", &run]).code, 0);
}

#[test]
fn a_higher_tier_goes_first() {
    let (home, holder) = busy_home();
    let first = home.tow(["submit", "sh", "-c", "date +%s%N"]).ok().id();
    let second = home.tow(["submit", "sh", "-c", "date +%s%N"]).ok().id();
    home.tow(["edit", &second, "--tier", "premium"]).ok();
    assert_eq!(home.show(&second)["tier"], "premium");
    home.tow(["abort", &holder]).ok();
    home.tow(["wait", &first, &second]).ok();
    let at = |run: &str| -> u64 {
        let log = home.tow(["logs", run]).ok().stdout;
        log.trim().parse().unwrap()
    };
    assert!(at(&second) < at(&first));
}

#[test]
fn a_shorter_time_ends_it() {
    let (home, holder) = busy_home();
    let run = home.tow(["submit", "sleep", "300"]).ok().id();
    home.tow(["edit", &run, "--time", "1s"]).ok();
    home.tow(["abort", &holder]).ok();
    assert_eq!(home.tow(["wait", &run]).code, 1);
    assert_eq!(home.show(&run)["reason"], "time_limit");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let (home, holder) = taken();
    let run = home.tow(["submit", "-n", "1", "true"]).ok().id();
    for (words, code, said) in [
        (vec!["edit", &run, "-n", "8"], 123, "8 GPUs"),
        (vec!["edit", &run], 120, "nothing is to be changed"),
        (
            vec!["edit", &run, "--tier", "gold"],
            120,
            "premium, standard or basic",
        ),
        (vec!["edit", &holder, "--time", "1h"], 123, "runs already"),
    ] {
        let refused = home.tow(&words);
        assert_eq!(refused.code, code, "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains(said),
            "{words:?}: {}",
            refused.stderr
        );
    }
    assert_eq!(home.show(&run)["gpus"], 1);
    let done = home.tow(["abort", &run, &holder, "--wait"]).ok();
    assert_eq!(
        home.tow(["edit", &run, "--time", "1h"]).code,
        123,
        "{done:?}"
    );
    ended(&home, &["true"]);
    assert!(runs(&home, &["--state", "active"]).is_empty());
}
