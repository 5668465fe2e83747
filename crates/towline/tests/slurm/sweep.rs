//! A sweep is one array.

use crate::lab::{Lab, until_within};
use std::collections::BTreeSet;
use std::fs;
use towline_testkit::real::slurm::Options;

#[test]
fn two_hundred_runs_are_one_array_with_values_and_logs_of_their_own() {
    let lab = Lab::own(&Options {
        nodes: 2,
        cpus: 16,
        ..Options::default()
    });
    lab.home
        .write("one.sh", "echo lr $1 seed $2 task $TOW_RUN_ID\n");
    let seeds = "seed=1-100";
    let submitted = lab
        .tow([
            "submit",
            "--name",
            "grid",
            "--sweep",
            "lr=0.10,1e-3",
            "--sweep",
            seeds,
            "sh",
            "one.sh",
            "${{lr}}",
            "${{seed}}",
        ])
        .ok();
    let sweep = submitted.id();
    let listed = lab.tow(["ps", &sweep, "--all", "--json"]).ok().json();
    assert_eq!(
        listed["runs"].as_array().unwrap().len(),
        200,
        "{submitted:?}"
    );
    until_within(150, "200 runs to end", || {
        let active = lab.tow(["ps", "--state", "active", "--json"]).ok().json();
        active["runs"].as_array().unwrap().is_empty().then_some(())
    });
    // The database hears of it a little later; then it knows of these, and of no more.
    let rows = || {
        lab.slurm()
            .root(
                "ctl",
                ["sacct", "-n", "-P", "-X", "-a", "-o", "JobID,JobName"],
            )
            .ok()
            .stdout
    };
    let rows = until_within(60, "200 runs in the database", || {
        Some(rows()).filter(|rows| rows.lines().count() >= 200)
    });
    let arrays: BTreeSet<&str> = rows
        .lines()
        .filter_map(|line| line.split('_').next())
        .collect();
    assert_eq!((arrays.len(), rows.lines().count()), (1, 200), "{rows}");
    assert!(
        rows.lines()
            .all(|line| line.ends_with(&format!("|{sweep}"))),
        "{rows}"
    );
    let mut told = BTreeSet::new();
    for number in 1..=200 {
        let id = format!("{sweep}-{number}");
        let (lr, seed) = (
            if number <= 100 { "0.10" } else { "1e-3" },
            (number - 1) % 100 + 1,
        );
        let log = fs::read_to_string(lab.far(&id).join("attempt-1.rank-0.log")).unwrap();
        assert_eq!(log, format!("lr {lr} seed {seed} task {id}\n"));
        told.insert(log);
    }
    assert_eq!(told.len(), 200);
    for number in [1, 77, 200] {
        let id = format!("{sweep}-{number}");
        assert_eq!(
            lab.tow(["logs", &id]).ok().stdout,
            fs::read_to_string(lab.far(&id).join("attempt-1.rank-0.log")).unwrap()
        );
        assert_eq!(lab.home.show(&id)["attempt"], 1);
    }
}

#[test]
fn one_run_of_a_sweep_is_aborted_and_only_the_failed_are_done_again() {
    let lab = Lab::shared();
    let script = "case $0 in 2) exit 5;; 3) sleep 500;; esac; echo $0";
    let sweep = lab
        .tow([
            "submit", "--name", "some", "--sweep", "i=1-4", "sh", "-c", script, "${{i}}",
        ])
        .ok()
        .id();
    let id = |number: u32| format!("{sweep}-{number}");
    for number in [1, 2, 4] {
        lab.ended(&id(number));
    }
    lab.until_state(&id(3), "running");
    lab.tow(["abort", &id(3)]).ok();
    assert_eq!(lab.ended(&id(3))["state"], "cancelled");
    let states: Vec<String> = (1..=4)
        .map(|number| lab.home.state_of(&id(number)))
        .collect();
    assert_eq!(states, ["succeeded", "failed", "cancelled", "succeeded"]);
    assert_eq!(lab.home.show(&id(2))["exit_code"], 5);
    assert_eq!(lab.tow(["logs", &id(4)]).ok().stdout, "4\n");
    let again = lab.tow(["resubmit", &sweep]).ok();
    let runs = lab.tow(["ps", "--json"]).ok().json()["runs"]
        .as_array()
        .unwrap()
        .len();
    assert!((5..8).contains(&runs), "not all of them: {again:?}");
}
