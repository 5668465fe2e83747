//! `tow abort`: the end of a run, and of nothing else.

use super::{busy_home, ended, home, last_line, runs};
use serde_json::json;
use towline_testkit::until;

#[test]
fn a_running_one_ends_as_cancelled() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "trap 'echo asked; exit 0' TERM; touch ready; while :; do sleep 0.01; done",
        ])
        .ok()
        .id();
    until("it to be ready", || {
        home.project().join("ready").exists().then_some(())
    });
    assert!(!home.job_processes().is_empty(), "what runs is seen");
    let output = home.tow(["abort", &id]).ok();
    assert_eq!(
        (output.stdout, output.stderr),
        (format!("aborting {id}\n"), String::new())
    );
    assert_eq!(home.tow(["wait", &id]).code, 143);
    let run = home.show(&id);
    assert_eq!(
        (&run["state"], &run["reason"], &run["exit_code"]),
        (&json!("cancelled"), &json!("by_user"), &json!(143))
    );
    assert!(
        home.tow(["logs", &id]).ok().stdout.ends_with("asked\n"),
        "it had its grace"
    );
    assert!(home.job_processes().is_empty());
}

#[test]
fn the_latest_the_alias_and_several_at_once() {
    let (home, holder) = busy_home();
    let queued: Vec<String> = (0..3)
        .map(|_| home.tow(["submit", "true"]).ok().id())
        .collect();
    assert_eq!(
        home.tow(["a", "@"]).ok().stdout,
        format!("aborting {}\n", queued[2])
    );
    assert_eq!(
        home.state_of(&queued[2]),
        "cancelled",
        "a queued one just goes"
    );
    let output = home.tow(["abort", "--wait", &holder, &queued[0]]).ok();
    assert_eq!(
        output.stdout,
        format!("aborted {holder}\naborted {}\n", queued[0])
    );
    assert_eq!(
        (home.state_of(&holder), home.state_of(&queued[0])),
        ("cancelled".into(), "cancelled".into())
    );
    home.tow(["wait", &queued[1]]).ok();
    assert_eq!(
        home.state_of(&queued[1]),
        "succeeded",
        "one that was not named goes on"
    );
}

#[test]
fn one_wrong_name_and_none_is_touched() {
    let (home, holder) = busy_home();
    let output = home.tow(["abort", &holder, "feedbeef"]);
    assert_eq!((output.code, output.stdout.as_str()), (122, ""));
    let run = home.show(&holder);
    assert_eq!(
        (&run["state"], &run["cancel_requested"]),
        (&json!("running"), &json!(false))
    );
}

#[test]
fn an_ended_run_stays_ended() {
    let home = home();
    let id = ended(&home, &["sh", "-c", "exit 3"]);
    let before = home.show(&id);
    let output = home.tow(["abort", &id]).ok();
    assert_eq!(output.stdout, format!("{id} had ended already\n"));
    assert_eq!(home.show(&id), before);
    assert_eq!(
        home.tow(["abort", "--json", &id]).ok().json(),
        json!({"cancelling": [], "already_ended": [id]})
    );
}

#[test]
fn named_twice_it_is_one() {
    let (home, holder) = busy_home();
    let output = home.tow(["abort", "--wait", &holder, "@"]).ok();
    assert_eq!(output.stdout, format!("aborted {holder}\n"));
}

#[test]
fn for_programs() {
    let (home, holder) = busy_home();
    let output = home.tow(["abort", &holder, "--json"]).ok();
    assert_eq!(
        (output.json(), output.stderr.as_str()),
        (json!({"cancelling": [holder], "already_ended": []}), "")
    );
}

#[test]
fn a_held_failure_is_let_go_and_stays_a_failure() {
    let home = home();
    let id = home
        .tow(["submit", "--hold-on-failure", "1h", "sh", "-c", "exit 4"])
        .ok()
        .id();
    until("it to be held", || {
        home.show(&id)["held_until"].is_string().then_some(())
    });
    assert!(home.tow(["ps"]).ok().stdout.contains("failed, held"));
    let held = home.show(&id);
    assert_eq!(
        (&held["ended"], &held["reason"], &held["exit_code"]),
        (&json!(null), &json!("exit_code"), &json!(4))
    );
    home.tow(["abort", "--wait", &id]).ok();
    let run = home.show(&id);
    assert_eq!(
        (
            &run["state"],
            &run["reason"],
            &run["exit_code"],
            &run["held_until"]
        ),
        (
            &json!("failed"),
            &json!("exit_code"),
            &json!(4),
            &json!(null)
        )
    );
    let waited = home.tow(["wait", &id]);
    assert_eq!(waited.code, 4);
    assert_eq!(
        last_line(&waited.stderr),
        format!("{id} failed: rank 0 left with code 4; code 4")
    );
    assert_eq!(runs(&home, &["--state", "cancelled"]).len(), 0);
}

#[test]
fn what_the_job_left_behind_goes_too() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "setsid sleep 300 & sleep 300 & touch ready; wait",
        ])
        .ok()
        .id();
    until("it to be ready", || {
        home.project().join("ready").exists().then_some(())
    });
    until("all three to be seen", || {
        (home.job_processes().len() >= 3).then_some(())
    });
    home.tow(["abort", "--wait", &id]).ok();
    assert_eq!(home.job_processes(), Vec::<i32>::new());
}
