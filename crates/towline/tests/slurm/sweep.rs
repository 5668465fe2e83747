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

#[test]
fn a_far_sweep_is_followed_as_one_and_shown_run_after_run() {
    let lab = Lab::own(&Options {
        nodes: 1,
        cpus: 2,
        ..Options::default()
    });
    let script =
        "echo begin $0; until [ -e ~/go-$0 ]; do sleep 0.1; done; echo end $0; exit $((0$0 / 3))";
    let sweep = lab
        .tow([
            "submit", "--name", "live", "--sweep", "i=1-3", "sh", "-c", script, "${{i}}",
        ])
        .ok()
        .id();
    let short = &sweep[sweep.len() - 5..];
    let shown = lab.home.path("shown");
    let follower = lab
        .home
        .command(["logs", "-f", &sweep])
        .stdout(fs::File::create(&shown).unwrap())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let sees = |line: &str| {
        until_within(120, &format!("{line:?} to be shown"), || {
            let text = fs::read_to_string(&shown).unwrap();
            text.lines().any(|known| known == line).then_some(())
        });
    };
    let go = |number: u32| {
        let file = format!("go-{number}");
        lab.slurm().exec("login", "alice", ["touch", &file]).ok();
    };
    sees(&format!("[{short}-1] begin 1"));
    sees(&format!("[{short}-2] begin 2"));
    go(2);
    // The third one waits until there is room.
    sees(&format!("[{short}-3] begin 3"));
    go(3);
    go(1);
    let output = follower.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let text = fs::read_to_string(&shown).unwrap();
    let lines: BTreeSet<&str> = text.lines().collect();
    let all: Vec<String> = (1..=3)
        .flat_map(|number| {
            ["begin", "end"].map(|word| format!("[{short}-{number}] {word} {number}"))
        })
        .collect();
    assert_eq!(lines, all.iter().map(String::as_str).collect(), "{told}");
    assert_eq!(text.lines().count(), 6, "each line once: {text}");
    assert!(
        told.contains(&format!("{sweep}: 1 failed, 2 succeeded")),
        "{told}"
    );
    let mut expected = String::new();
    for (number, state) in [(1, "succeeded"), (2, "succeeded"), (3, "failed")] {
        expected += &format!("==> {short}-{number} i={number}: {state} <==\n");
        expected += &format!("begin {number}\nend {number}\n");
    }
    assert_eq!(lab.tow(["logs", &sweep]).ok().stdout, expected);
    let row = lab.tow(["ps"]).ok().stdout;
    assert!(
        row.contains("1 failed, 2 succeeded") && row.contains("lab"),
        "{row}"
    );
}
