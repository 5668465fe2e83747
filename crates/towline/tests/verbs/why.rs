//! `tow why`: why it waits, why it failed, what next.

use super::{busy_home, ended, home, short};
use serde_json::json;

#[test]
fn a_run_that_ended_well() {
    let home = home();
    let id = ended(&home, &["true"]);
    let output = home.tow(["why", &id]).ok();
    assert_eq!(output.stdout, format!("{id} succeeded: it ended well\n"));
    assert_eq!(home.tow(["why", &id, "--json"]).ok().json()["state"], "succeeded");
}

#[test]
fn the_first_failing_rank_and_where_to_look() {
    let home = home();
    let id = ended(&home, &["--launch", "3", "sh", "-c", "[ $RANK = 1 ] && exit 9; exec sleep 300"]);
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!((&json["id"], &json["state"], &json["reason"], &json["first_failing_rank"]), (&json!(id), &json!("failed"), &json!("exit_code"), &json!(1)));
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(text.contains("rank 1 left with code 9"), "{text}");
    assert!(text.contains(&format!("tow logs {}", short(&id))), "{text}");
}

#[test]
fn the_step_that_is_advised_shows_the_failing_rank() {
    let home = home();
    let id = ended(&home, &["--launch", "3", "sh", "-c", "[ $RANK = 2 ] && { echo it was me; exit 9; }; exec sleep 300"]);
    let step = home.tow(["why", &id, "--json"]).ok().json()["next_step"].as_str().unwrap().to_owned();
    let words: Vec<&str> = step.split("tow ").last().unwrap().split_whitespace().collect();
    assert_eq!(home.tow(words).ok().stdout, "it was me\n", "{step}");
}

#[test]
fn the_cause_is_read_from_the_log() {
    let home = home();
    let traceback =
        "Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n    import nothere\nModuleNotFoundError: No module named 'nothere'\n";
    home.write("trace.txt", traceback);
    let id = ended(&home, &["cat trace.txt; exit 1"]);
    let output = home.tow(["why", &id]).ok();
    assert!(output.stdout.contains("No module named 'nothere'"), "{}", output.stdout);
    assert!(output.stdout.contains("not transient"), "{}", output.stdout);
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!((&json["cause"], &json["transient"]), (&json!("missing_module"), &json!(false)));
    assert!(json["evidence"].as_str().unwrap().contains("nothere") && json["next_step"].is_string(), "{json}");
}

#[test]
fn a_program_that_is_not_there_and_a_set_up_that_failed() {
    let home = home();
    let id = ended(&home, &["no-such-program"]);
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(text.contains("no-such-program") && text.contains("PATH"), "{text}");
    home.write("job.yaml", "environment: {setup: ['echo no space; exit 2']}\ncommand: 'true'\n");
    let id = ended(&home, &["-f", "job.yaml"]);
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!(json["reason"], "set_up");
    assert!(json["next_step"].as_str().unwrap().contains("--setup"), "{json}");
}

#[test]
fn a_queued_run_waits_for_something_that_somebody_holds() {
    let (home, holder) = busy_home();
    let id = home.tow(["submit", "true"]).ok().id();
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(text.starts_with(&format!("{id} queued: it waits for 1 CPU")), "{text}");
    assert!(text.contains(&format!("held by {}", short(&holder))), "{text}");
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!((&json["state"], json["waiting"].is_object()), (&json!("queued"), true));
}

#[test]
fn running_and_cancelled_runs() {
    let (home, holder) = busy_home();
    let text = home.tow(["why", &holder]).ok().stdout;
    assert!(text.contains("it is running") && text.contains("tow logs -f"), "{text}");
    home.tow(["abort", "--wait", &holder]).ok();
    let text = home.tow(["why", &holder]).ok().stdout;
    assert!(text.contains("cancelled by the user") && text.contains(&format!("tow resubmit {}", short(&holder))), "{text}");
}

#[test]
fn a_held_run_failed_and_says_what_can_be_done() {
    let home = home();
    let id = home.tow(["submit", "--hold-on-failure", "1h", "sh", "-c", "exit 4"]).ok().id();
    towline_testkit::until("it to be held", || home.show(&id)["held_until"].is_string().then_some(()));
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(text.starts_with(&format!("{id} failed, held: rank 0 left with code 4")), "{text}");
    assert!(text.contains("tow ssh") && text.contains("tow abort"), "{text}");
    home.tow(["abort", "--wait", &id]).ok();
}
