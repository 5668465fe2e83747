//! Backups by themselves: on their interval, over the death of the daemon and jumps of the clock,
//! with failures told where the user looks.

use crate::{home, ids, status, until_within, work};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use towline_host::process;
use towline_testkit::Home;

/// The least that can be asked for.
const EVERY: &str = "10s";

/// A workspace of the configuration that keeps its last two backups.
fn keeping_two(home: &Home, name: &str) -> PathBuf {
    let folder = home.path(&format!("scratch/{name}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("notes"), "first\n").unwrap();
    let file = home.path("config/towline/config.yaml");
    let known = fs::read_to_string(&file).unwrap_or_else(|_| "workspaces:\n".to_owned());
    let keep = "keep: {last: 2, hourly: 0, daily: 0, weekly: 0}";
    home.configure(&format!(
        "{known}  {name}: {{path: {}, to: {}, {keep}}}\n",
        folder.display(),
        home.path(&format!("kept-{name}")).display()
    ));
    folder
}

fn moment(home: &Home, name: &str, key: &str) -> Value {
    status(home, name)["status"][key].clone()
}

/// Waits until one more backup of it began and went well; its status then.
#[track_caller]
fn next(home: &Home, name: &str) -> Value {
    let before = moment(home, name, "began");
    until_within(60, &format!("the next backup of {name}"), || {
        let row = status(home, name);
        assert_ne!(row["state"], "failing", "{row}");
        (row["status"]["began"] != before).then(|| row["status"].clone())
    })
}

/// What a jump of the clock looks like to the daemon: its last backup lies far ahead, or far
/// behind.
fn jump(home: &Home, name: &str, seconds: i64) {
    home.tow(["daemon", "stop"]);
    let file = home.state().workspace(name, "status");
    let mut status: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    status["began"] = (status["began"].as_i64().unwrap() + seconds * 1000).into();
    fs::write(&file, serde_json::to_vec(&status).unwrap()).unwrap();
}

#[test]
fn they_run_on_their_interval_skip_what_is_unchanged_and_keep_what_the_policy_says() {
    let home = home();
    let folder = keeping_two(&home, "work");
    keeping_two(&home, "other");
    let on = home.tow(["scratch", "auto", "work", "--every", EVERY]).ok();
    assert!(on.stdout.contains("every 10s; kept: the last 2"), "{on:?}");
    until_within(60, "the first backup", || {
        status(&home, "work")["status"]["good"]
            .is_string()
            .then_some(())
    });
    for number in 0..3 {
        fs::write(folder.join("notes"), format!("{number}\n")).unwrap();
        let stored = moment(&home, "work", "stored");
        until_within(60, "a changed workspace to be stored", || {
            (moment(&home, "work", "stored") != stored).then_some(())
        });
    }
    let kept = ids(&home, "work");
    assert_eq!(kept.len(), 2, "the policy keeps two of four");
    let stored = moment(&home, "work", "stored");
    let skipped = next(&home, "work");
    assert_eq!(
        (&skipped["stored"], ids(&home, "work")),
        (&stored, kept),
        "nothing changed, nothing was stored"
    );
    let row = status(&home, "work");
    assert_eq!(
        (&row["auto"], &row["state"]),
        (&EVERY.into(), &"good".into()),
        "{row}"
    );

    // The other one tells the time that passes: of the first nothing more comes.
    home.tow(["scratch", "auto", "work", "--off"]).ok();
    home.tow(["scratch", "auto", "other", "--every", EVERY])
        .ok();
    until_within(60, "the other's first", || {
        status(&home, "other")["status"]["good"]
            .is_string()
            .then_some(())
    });
    let last = moment(&home, "work", "began");
    next(&home, "other");
    assert_eq!(moment(&home, "work", "began"), last, "it is off");
    home.tow(["scratch", "auto", "other", "--off"]).ok();
}

#[test]
fn they_go_on_after_the_daemon_is_killed_and_the_clock_has_jumped() {
    let home = home();
    work(&home);
    home.tow(["scratch", "auto", "work", "--every", EVERY]).ok();
    next(&home, "work");
    assert!(home.kill_daemon());
    // Whoever looks starts it again.
    home.tow(["ps"]).ok();
    assert!(home.daemon().is_some());
    next(&home, "work");
    for seconds in [86_400, -300 * 86_400] {
        jump(&home, "work", seconds);
        let jumped = moment(&home, "work", "began");
        until_within(60, "a backup at once", || {
            (moment(&home, "work", "began") != jumped).then_some(())
        });
        next(&home, "work");
    }
    home.tow(["scratch", "auto", "work", "--every", "1d"]).ok();
    jump(&home, "work", 40 * 86_400);
    let jumped = moment(&home, "work", "began");
    until_within(60, "a clock that was set back not to put it off", || {
        (moment(&home, "work", "began") != jumped).then_some(())
    });
    home.tow(["scratch", "auto", "work", "--off"]).ok();
}

/// Waits until `tow ps` and `tow scratch ls` tell of a failure that says so.
#[track_caller]
fn told(home: &Home, why: &str) {
    until_within(60, "a failure to be told", || {
        (status(home, "work")["state"] == "failing").then_some(())
    });
    let seen = home.tow(["ps"]).ok();
    assert!(
        seen.stderr.contains("backups of workspace `work` fail") && seen.stderr.contains(why),
        "{seen:?}"
    );
    for words in [
        vec!["scratch", "ls"],
        vec!["scratch", "ls", "work"],
        vec!["scratch", "ls", "--json"],
    ] {
        let listed = home.tow(&words);
        assert_eq!(listed.code, 123, "{listed:?}");
        assert!(
            listed.stdout.contains(why) || listed.stderr.contains(why),
            "{listed:?}"
        );
    }
}

#[track_caller]
fn well_again(home: &Home) {
    until_within(60, "backups to be good again", || {
        (status(home, "work")["state"] == "good").then_some(())
    });
    home.tow(["scratch", "ls"]).ok();
    assert!(
        !home.tow(["ps"]).ok().stderr.contains("workspace"),
        "recovery clears it"
    );
}

#[test]
fn a_failure_is_told_until_it_is_over() {
    let home = home();
    let folder = work(&home);
    home.tow(["scratch", "auto", "work", "--every", EVERY]).ok();
    let away = home.path("scratch/away");
    fs::rename(&folder, &away).unwrap();
    told(&home, "is not there");
    assert_eq!(ids(&home, "work").len(), 1, "the last good one is listed");
    fs::rename(&away, &folder).unwrap();
    well_again(&home);
    home.tow(["scratch", "auto", "work", "--off"]).ok();
}

#[test]
fn a_backup_that_is_killed_is_told_too() {
    let mut home = home();
    let folder = work(&home);
    home.set("TOW_CRASH_AT", "backup.root.before");
    home.tow(["scratch", "auto", "work", "--every", EVERY]).ok();
    fs::write(folder.join("notes"), "second\n").unwrap();
    told(&home, "killed by signal 9");
    assert_eq!(ids(&home, "work").len(), 1);
    home.unset("TOW_CRASH_AT");
    home.tow(["daemon", "stop"]);
    home.tow(["scratch", "ls"]);
    well_again(&home);
    assert_eq!(ids(&home, "work").len(), 2);
    home.tow(["scratch", "auto", "work", "--off"]).ok();
}

/// Turned off while one runs: it ends, and nobody waits for it.
#[test]
fn nothing_is_left_when_it_is_turned_off() {
    let home = home();
    work(&home);
    home.tow(["scratch", "auto", "work", "--every", EVERY]).ok();
    next(&home, "work");
    assert!(home.state().workspace("work", "auto").exists());
    home.tow(["scratch", "auto", "work", "--off"]).ok();
    for name in ["auto", "secrets"] {
        assert!(!home.state().workspace("work", name).exists());
    }
    let daemon = home.daemon().unwrap();
    // Runners wait below it too; one that ended and was not waited for has no words any more.
    let words = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let left = || {
        process::descendants(daemon)
            .iter()
            .filter(|pid| words(pid).is_empty() || words(pid).contains("__backup"))
            .count()
    };
    until_within(30, "no backup below the daemon", || {
        (left() == 0).then_some(())
    });
    assert!(
        home.state().workspace("work", "status").exists(),
        "how the last one went is still told"
    );
}
