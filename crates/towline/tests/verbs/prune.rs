//! `tow prune`: a plan first.

use super::{busy_home, ended, home, ids, runs};
use serde_json::json;
use std::fs;
use towline_testkit::{Home, until};

/// Waits until `count` runs are old enough to go.
fn old(home: &Home, count: usize) {
    until("the runs to be a second old", || {
        let plan = home
            .tow(["prune", "--older-than", "1s", "--json"])
            .ok()
            .json();
        (plan["runs"].as_array().unwrap().len() == count).then_some(())
    });
}

fn folders(home: &Home) -> usize {
    fs::read_dir(home.state().runs()).map_or(0, Iterator::count)
}

#[test]
fn a_plan_that_changes_nothing_and_then_the_deed() {
    let (home, holder) = busy_home();
    home.tow(["abort", "--wait", &holder]).ok();
    let ended = ended(&home, &["echo", "x"]);
    let running = home.tow(["submit", "sleep", "300"]).ok().id();
    home.wait_for_state(&running, "running");
    let queued = home.tow(["submit", "true"]).ok().id();
    old(&home, 2);
    let before = (runs(&home, &[]), folders(&home));
    assert!(
        before.1 >= 3,
        "runs that have begun have folders: {}",
        before.1
    );
    let plan = home.tow(["prune", "--older-than", "1s"]).ok();
    assert!(
        plan.stdout.starts_with("would remove 2 run(s)"),
        "{}",
        plan.stdout
    );
    assert!(
        plan.stdout.contains(&ended) && plan.stdout.contains(&holder),
        "{}",
        plan.stdout
    );
    assert!(
        !plan.stdout.contains(&running) && !plan.stdout.contains(&queued),
        "{}",
        plan.stdout
    );
    assert!(plan.stderr.contains("--yes"), "{}", plan.stderr);
    assert_eq!(
        (runs(&home, &[]), folders(&home)),
        before,
        "a plan changes nothing"
    );
    let done = home.tow(["prune", "--older-than", "1s", "--yes"]).ok();
    assert!(
        done.stdout.starts_with("removed 2 run(s)"),
        "{}",
        done.stdout
    );
    assert_eq!(
        ids(&runs(&home, &[])),
        [queued.as_str(), &running],
        "what is not over stays"
    );
    assert_eq!(home.tow(["show", &ended]).code, 122);
    assert!(
        !home.state().runs().join(&ended).exists(),
        "its logs are gone"
    );
    assert!(home.state().runs().join(&running).exists());
    assert_eq!(home.state_of(&running), "running");
}

#[test]
fn by_default_a_month() {
    let home = home();
    ended(&home, &["true"]);
    let output = home.tow(["prune", "--yes"]).ok();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.trim()),
        ("", "nothing is that old")
    );
    assert_eq!(runs(&home, &[]).len(), 1);
}

#[test]
fn the_newest_stay_when_asked() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1-4", "true"]);
    old(&home, 4);
    assert_eq!(folders(&home), 4);
    let plan = home
        .tow(["prune", "--older-than", "1s", "--keep", "3", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&plan["runs"], &plan["done"]),
        (&json!([format!("{sweep}-1")]), &json!(false))
    );
    let done = home
        .tow([
            "prune",
            "--older-than",
            "1s",
            "--keep",
            "3",
            "--yes",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(done["done"], true);
    assert_eq!(
        runs(&home, &[&sweep]).len(),
        3,
        "the rest of the sweep is still a sweep"
    );
    home.tow(["prune", "--older-than", "1s", "--yes"]).ok();
    assert_eq!((runs(&home, &[]).len(), folders(&home)), (0, 0));
    assert_eq!(
        home.tow(["history", "--json"]).ok().json(),
        json!({"submissions": []})
    );
    assert_eq!(home.tow(["ps", &sweep]).code, 122);
}

#[test]
fn without_any_run() {
    let home = home();
    assert_eq!(home.tow(["prune", "--json"]).ok().json()["runs"], json!([]));
    assert!(!home.path("state/towline").exists());
}

#[test]
fn the_runs_of_a_sweep_are_one_line_of_the_plan() {
    let home = home();
    let alone = ended(&home, &["true"]);
    let sweep = ended(&home, &["--sweep", "a=1-30", "true"]);
    let last = ended(&home, &["true"]);
    old(&home, 32);
    let plan = home.tow(["prune", "--older-than", "1s"]).ok().stdout;
    let lines: Vec<&str> = plan.lines().collect();
    assert!(lines[0].starts_with("would remove 32 run(s)"), "{plan}");
    assert_eq!(lines.len(), 4, "{plan}");
    for (line, begin) in lines[1..].iter().zip([
        format!("  {alone}  ended "),
        format!("  {sweep}  30 runs of a sweep, the last ended "),
        format!("  {last}  ended "),
    ]) {
        assert!(line.starts_with(&begin), "{plan}");
    }
    let json = home.tow(["prune", "--older-than", "1s", "--json"]).ok();
    let details = &json.json()["details"];
    assert!(details[0].get("sweep").is_none(), "{details}");
    assert_eq!(details[1]["sweep"], sweep.as_str());
}
