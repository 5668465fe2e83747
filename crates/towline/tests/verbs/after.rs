//! `tow submit --after`: a run begins when others have ended as they had to.

use super::{busy_home, ended, gate, home, home_with_gpus, runs, short};
use towline_testkit::{Home, until};

/// A run that waits for a file, then leaves with this code.
fn gated(home: &Home, name: &str, code: u32) -> String {
    let command = format!("{}; exit {code}", gate(name));
    home.tow(["submit", "sh", "-c", &command]).ok().id()
}

#[track_caller]
fn submit_after(home: &Home, before: &str, command: &str) -> String {
    let words = ["submit", "--after", before, "sh", "-c", command];
    home.tow(words).ok().id()
}

#[test]
fn a_run_begins_when_the_one_before_has_succeeded() {
    let home = home_with_gpus();
    let first = gated(&home, "go", 0);
    home.wait_for_state(&first, "running");
    let submitted = home.tow(["submit", "--after", "@", "cat", "made"]).ok();
    let second = submitted.id();
    assert!(
        submitted
            .stderr
            .contains(&format!("it begins after {}", short(&first))),
        "{}",
        submitted.stderr
    );
    let shown = home.show(&second);
    assert_eq!(shown["state"], "queued");
    assert_eq!(shown["after"][0]["run"], first.as_str());
    assert_eq!(shown["after"][0]["when"], "succeeded");
    let listed = home.tow(["ps"]).ok().stdout;
    let waits = format!("queued (after {})", short(&first));
    assert!(listed.contains(&waits), "{listed}");
    let why = home.tow(["why", &second]).ok().stdout;
    let begins = format!("it begins after {} (running)", short(&first));
    assert!(why.contains(&begins), "{why}");
    // There is room, and another run goes first.
    ended(&home, &["true"]);
    assert_eq!(home.state_of(&second), "queued");
    home.write("made", "by the first\n");
    home.write("go", "");
    assert_eq!(home.tow(["wait", &second]).code, 0);
    let times = |run: &str, key: &str| home.show(run)[key].as_str().unwrap().to_owned();
    assert!(times(&first, "ended") <= times(&second, "started"));
    assert!(home.show(&second).get("after").is_none());
}

#[test]
fn a_run_that_can_no_longer_begin_is_cancelled_and_so_are_those_after_it() {
    let home = home();
    let first = gated(&home, "go", 7);
    let second = submit_after(&home, &first, "echo never");
    let third = submit_after(&home, &second, "echo never");
    let at_last = submit_after(&home, &format!("{third}:ended"), "true");
    let on_failure = submit_after(&home, &format!("{first}:failed"), "true");
    let both = submit_after(&home, &format!("{first}:ended,{at_last}"), "true");
    home.write("go", "");
    for (run, code) in [
        (&second, 143),
        (&third, 143),
        (&at_last, 0),
        (&on_failure, 0),
        (&both, 0),
    ] {
        assert_eq!(home.tow(["wait", run]).code, code, "{run}");
    }
    let shown = home.show(&second);
    assert_eq!(shown["state"], "cancelled");
    assert_eq!(shown["reason"], "dependency");
    assert_eq!(shown["attempt"], 0);
    let why = home.tow(["why", &second]).ok().stdout;
    let never = format!("it never started: {} failed", short(&first));
    assert!(why.contains(&never), "{why}");
    let why = home.tow(["why", &third]).ok().stdout;
    let never = format!("it never started: {} was cancelled", short(&second));
    assert!(why.contains(&never), "{why}");
    let all = [&first, &second, &third].map(|run| short(run)).join(" ");
    let step = format!(
        "tow why {} tells the cause; once it is mended: tow resubmit {all}",
        short(&first)
    );
    assert!(why.contains(&step), "{why}");
    assert!(
        home.tow(["ps"])
            .ok()
            .stdout
            .contains("cancelled (dependency)")
    );
}

#[test]
fn a_sweep_counts_as_one() {
    let home = home_with_gpus();
    let command = format!("{}; exit $((${{{{a}}}} == 2))", gate("go-${{a}}"));
    let words = ["submit", "--sweep", "a=1-3", "sh", "-c", &command];
    let sweep = home.tow(words).ok().id();
    let after_all = submit_after(&home, &sweep, "true");
    let after_failure = submit_after(&home, &format!("{sweep}:failed"), "true");
    let after_one = submit_after(&home, &format!("{sweep}-1"), "true");
    let swept = [
        "submit",
        "--after",
        &format!("{sweep}:ended"),
        "--sweep",
        "b=1-2",
        "sh",
        "-c",
        "exit $((${{b}} - 1))",
    ];
    let swept = home.tow(swept).ok().id();
    home.write("go-1", "");
    assert_eq!(home.tow(["wait", &after_one]).code, 0);
    home.write("go-2", "");
    home.wait_for_state(&format!("{sweep}-2"), "failed");
    for run in [&after_all, &after_failure] {
        assert_eq!(
            home.state_of(run),
            "queued",
            "one run of the sweep has not ended"
        );
    }
    home.write("go-3", "");
    assert_eq!(home.tow(["wait", &after_all]).code, 143);
    assert_eq!(home.tow(["wait", &after_failure]).code, 0);
    assert_eq!(home.tow(["wait", &swept]).code, 1);
    let why = home.tow(["why", &after_all]).ok().stdout;
    assert!(why.contains("1 failed, 2 succeeded"), "{why}");
}

#[test]
fn what_can_never_hold_is_refused_at_once() {
    let home = home();
    let bad = ended(&home, &["false"]);
    let good = ended(&home, &["true"]);
    for (before, code, words) in [
        (bad.clone(), 123, "will never have succeeded: 1 failed"),
        (format!("{good}:failed"), 123, "will never have failed"),
        (format!("{good}:done"), 120, "`done` is no condition"),
        ("nosuch".to_owned(), 122, "no run is called `nosuch`"),
        (format!("{good},{good}:ended"), 120, "two conditions"),
    ] {
        let refused = home.tow(["submit", "--after", &before, "true"]);
        assert_eq!(refused.code, code, "{before}: {refused:?}");
        assert!(
            refused.stderr.contains(words),
            "{before}: {}",
            refused.stderr
        );
    }
    assert_eq!(runs(&home, &[]).len(), 2, "nothing was submitted");
    // What holds already does not wait.
    for before in [format!("{bad}:ended"), format!("{bad}:failed"), good] {
        ended(&home, &["--after", &before, "true"]);
    }
    let planned = ["submit", "--dry-run", "--after", &bad, "true"];
    assert_eq!(home.tow(planned).code, 123);
    let planned = [
        "submit",
        "--dry-run",
        "--after",
        &format!("{bad}:failed"),
        "true",
    ];
    let planned = home.tow(planned).ok().stdout;
    assert!(
        planned.contains(&format!("after     {bad} has failed")),
        "{planned}"
    );
}

#[test]
fn an_order_outlives_the_daemon() {
    let (home, holder) = busy_home();
    let first = gated(&home, "go", 0);
    let second = submit_after(&home, &first, "true");
    assert!(home.kill_daemon());
    home.tow(["abort", &holder, "--wait"]).ok();
    home.wait_for_state(&first, "running");
    assert!(home.kill_daemon());
    home.write("go", "");
    assert_eq!(home.tow(["wait", &second]).code, 0);
    assert!(home.kill_daemon());
    // Ended while no daemon was there.
    let first = gated(&home, "go2", 1);
    let second = submit_after(&home, &first, "true");
    home.wait_for_state(&first, "running");
    assert!(home.kill_daemon());
    home.write("go2", "");
    until("the first to end", || {
        home.job_processes().is_empty().then_some(())
    });
    assert_eq!(home.tow(["wait", &second]).code, 143);
}

#[test]
fn a_run_that_waits_for_another_can_be_aborted() {
    let (home, holder) = busy_home();
    let second = submit_after(&home, &holder, "true");
    let third = submit_after(&home, &format!("{second}:ended"), "true");
    home.tow(["abort", &second, "--wait"]).ok();
    assert_eq!(home.show(&second)["reason"], "by_user");
    home.tow(["abort", &holder]).ok();
    assert_eq!(home.tow(["wait", &third]).code, 0);
}

#[test]
fn what_is_submitted_again_keeps_its_order() {
    let home = home_with_gpus();
    let first = gated(&home, "go", 7);
    let second = submit_after(&home, &first, "cat made");
    let third = submit_after(&home, &format!("{second}:ended"), "true");
    home.write("go", "");
    assert_eq!(home.tow(["wait", &third]).code, 0);
    let before = |run: &str| {
        let after = home.show(run)["after"].clone();
        after[0]["run"].as_str().map(str::to_owned)
    };
    // Alone it would never begin. That changes nothing.
    let refused = home.tow(["resubmit", &second]);
    assert_eq!(refused.code, 123, "{refused:?}");
    let hint = format!("tow resubmit {} {}", short(&first), short(&second));
    for words in ["will never have succeeded: 1 failed", "--now", &hint] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert_eq!(runs(&home, &[]).len(), 3);
    // Together, in whatever order they are named, the new second waits for the new first.
    std::fs::remove_file(home.project().join("go")).expect("removed");
    home.write("made", "by the first\n");
    let again = home.tow(["resubmit", &second, &third, &first]).ok();
    let ids: Vec<String> = again.stdout.lines().map(str::to_owned).collect();
    let [new_first, new_second, new_third] = &ids[..] else {
        panic!("{again:?}");
    };
    assert_eq!(before(new_second).as_ref(), Some(new_first));
    assert_eq!(before(new_third).as_ref(), Some(new_second));
    let said = format!(
        "{}: it begins after {}",
        short(new_second),
        short(new_first)
    );
    assert!(again.stderr.contains(&said), "{}", again.stderr);
    home.write("go", "");
    assert_eq!(home.tow(["wait", new_third]).code, 0);
    assert_eq!(home.state_of(new_second), "cancelled");
    // Another run to wait for, and none.
    let good = ended(&home, &["true"]);
    let other = home.tow(["resubmit", "--after", &good, &second]).ok().id();
    assert_eq!(home.tow(["wait", &other]).code, 0);
    assert_eq!(home.tow(["logs", &other]).ok().stdout, "by the first\n");
    let now = home.tow(["resubmit", "--now", &second]).ok().id();
    assert_eq!(home.tow(["wait", &now]).code, 0);
    // A condition that holds already delays nothing: the third began after any end of the second.
    let same = home.tow(["resubmit", &third]).ok().id();
    assert_eq!(home.tow(["wait", &same]).code, 0);
}

#[test]
fn a_run_for_failures_only_is_not_advised_to_spoil_what_succeeded() {
    let home = home();
    let good = gated(&home, "go", 0);
    let clean_up = submit_after(&home, &format!("{good}:failed"), "true");
    home.write("go", "");
    assert_eq!(home.tow(["wait", &clean_up]).code, 143);
    let why = home.tow(["why", &clean_up]).ok().stdout;
    let step = format!(
        "tow resubmit --now {} begins it all the same",
        short(&clean_up)
    );
    assert!(why.contains(&step), "{why}");
}
