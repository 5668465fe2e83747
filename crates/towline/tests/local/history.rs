//! The history: migrations, newer and damaged databases, network file systems.

use super::home;
use rusqlite::Connection;
use std::fs;

#[test]
fn a_newer_database_is_read_and_not_written() {
    let home = home();
    let id = home.tow(["submit", "true"]).ok().id();
    home.tow(["wait", &id]).ok();
    assert!(home.kill_daemon());
    Connection::open(home.state().history())
        .unwrap()
        .execute_batch("PRAGMA user_version=99; ALTER TABLE runs ADD COLUMN moon TEXT")
        .unwrap();
    let listed = home.tow(["ps", "--json"]).ok();
    assert_eq!(listed.json()["runs"][0]["id"], id.as_str());
    assert!(listed.stderr.contains("newer tow"), "{}", listed.stderr);
    let refused = home.tow(["submit", "true"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("newer tow"), "{}", refused.stderr);
    assert_eq!(
        home.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_damaged_database_is_named_and_kept() {
    let home = home();
    home.tow(["run", "true"]).ok();
    assert!(home.kill_daemon());
    let path = home.state().history();
    let _ = fs::remove_file(path.with_extension("db-wal"));
    let _ = fs::remove_file(path.with_extension("db-shm"));
    let garbage = vec![b'x'; 8192];
    fs::write(&path, &garbage).unwrap();
    for words in [["ps"].as_slice(), &["submit", "true"], &["logs", "@"]] {
        let output = home.tow(words);
        assert_eq!(output.code, 127, "{words:?}: {output:?}");
        assert!(
            output.stderr.contains("damaged") && output.stderr.contains("history.db"),
            "{words:?}: {}",
            output.stderr
        );
    }
    assert_eq!(fs::read(&path).unwrap(), garbage, "it was not touched");
}

#[test]
fn where_wal_does_not_work_the_history_still_does() {
    let home = home().with("TOW_HISTORY_JOURNAL", "rollback");
    let id = home.tow(["submit", "--sweep", "i=1-20", "true"]).ok().id();
    home.tow(["wait", &id]).ok();
    assert_eq!(
        home.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
    assert!(!home.state().history().with_extension("db-wal").exists());
    assert!(
        home.tow(["doctor"])
            .ok()
            .stdout
            .contains("rollback journal")
    );
    assert!(home.kill_daemon());
    home.tow(["run", "true"]).ok();
}

/// In namespaces of its own: a state folder on a small file system that is filled to the brim.
const FULL: &str = r#"
mount -t tmpfs -o size=2m none "$XDG_STATE_HOME" || exit 99
"$TOW" run true || exit 98
cat /dev/zero > "$XDG_STATE_HOME/filler" 2>/dev/null
"$TOW" submit --sweep i=1-3000 true; echo "submit $?"
rm "$XDG_STATE_HOME/filler"
"$TOW" ps --json
"$TOW" run echo again
"$TOW" daemon stop > /dev/null
while ls "$XDG_STATE_HOME"/towline/*/runners/*.cgroup > /dev/null 2>&1; do sleep 0.02; done
"#;

#[test]
fn a_full_disk_refuses_and_changes_nothing() {
    let home = home();
    let environment: Vec<_> = home
        .command(["x"])
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.unwrap().to_owned()))
        .collect();
    let output = std::process::Command::new("unshare")
        .args([
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            FULL,
        ])
        .env_clear()
        .envs(environment)
        .env("TOW", home.binary())
        .current_dir(home.project())
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if output.status.code() == Some(99) || stderr.contains("unshare:") {
        return towline_testkit::ability::not_run(
            "a full disk, for this user may not make namespaces",
        );
    }
    assert!(stdout.contains("submit 123\n"), "{stdout}{stderr}");
    assert!(
        stderr.contains("is full") && stderr.contains("nothing was changed"),
        "{stderr}"
    );
    let list = stdout.lines().find(|line| line.starts_with('{')).unwrap();
    let runs: serde_json::Value = serde_json::from_str(list).unwrap();
    assert_eq!(
        runs["runs"].as_array().unwrap().len(),
        1,
        "nothing was made"
    );
    assert!(
        stdout.ends_with("again\n"),
        "and it goes on when there is room: {stdout}{stderr}"
    );
}

/// One row that another program, or a bad disk, has damaged is no reason to lose sight of all
/// others.
#[test]
fn a_row_that_cannot_be_read_is_left_out_and_named() {
    let home = home();
    let first = home.tow(["submit", "true"]).ok().id();
    home.tow(["wait", &first]).ok();
    let second = home.tow(["submit", "true"]).ok().id();
    home.tow(["wait", &second]).ok();
    assert!(home.kill_daemon());
    let damage = |sql: &str, id: &str| {
        assert_eq!(
            rusqlite::Connection::open(home.state().history())
                .unwrap()
                .execute(sql, [id])
                .unwrap(),
            1
        );
    };
    // As if it were active: that is what a daemon reads when it comes up.
    damage(
        "UPDATE runs SET state='{', phase='running' WHERE id=?1",
        &first,
    );
    let listed = home.tow(["ps", "--json"]).ok();
    assert_eq!(listed.json()["runs"].as_array().unwrap().len(), 1);
    assert!(
        listed.stderr.contains(&first) && listed.stderr.contains("tow doctor"),
        "{}",
        listed.stderr
    );
    assert_eq!(
        listed.stderr.matches("cannot be read").count(),
        1,
        "{}",
        listed.stderr
    );
    home.tow(["run", "true"]).ok();
    let doctor = home.tow(["doctor"]);
    assert_eq!(doctor.code, 127);
    assert!(
        doctor.stdout.contains(&first)
            && doctor.stdout.contains("DELETE FROM runs WHERE sequence=1"),
        "{}",
        doctor.stdout
    );
    damage("DELETE FROM runs WHERE id=?1", &first);
    assert!(home.tow(["doctor"]).stdout.contains("history        ok"));
}
