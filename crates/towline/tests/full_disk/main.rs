//! The disk that holds the state fills up. Exactly once holds all the same: what a full disk keeps
//! from being written is written when there is room, nothing starts twice, nothing is forgotten,
//! and whoever waits is told for what.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

mod campaign;
mod told;

use std::collections::HashMap;
use std::fs;
use towline_testkit::Home;
use towline_testkit::ability::not_run;
use towline_testkit::disk::Disk;

/// Keeps a ledger on another disk: every start and end, and whether another attempt was alive.
const JOB: &str = r#"#!/bin/sh
echo "start $TOW_RUN_ID $TOW_ATTEMPT" >> "$LEDGER"
exec 9>"$LEDGER.$TOW_RUN_ID.lock"
flock -n 9 || echo "double $TOW_RUN_ID $TOW_ATTEMPT" >> "$LEDGER"
case "$1" in
  quick) ;;
  long) while :; do read -r line < "$WAKE" || exit 1; done ;;
  third) [ "$TOW_ATTEMPT" -ge 3 ] || exit 1 ;;
  once) [ "$TOW_ATTEMPT" -ge 2 ] || read -r line < "$WAKE" ;;
  fill) head -c 6000000 /dev/zero | tr '\0' x || true ;;
esac
echo "end $TOW_RUN_ID $TOW_ATTEMPT" >> "$LEDGER"
"#;

/// A home whose state lies on a small disk; jobs and their ledger lie elsewhere.
fn home_on(kilobytes: u32) -> Option<(Home, Disk)> {
    let mut home = Home::new(env!("CARGO_BIN_EXE_tow"));
    let Some(disk) = Disk::mount_with_files(&home.path("state"), kilobytes, 500) else {
        not_run("a full disk under the state folder: nothing may be mounted here");
        return None;
    };
    home.configure("clusters:\n  local: {kind: local, cpus: 2}\n");
    home.write("job.sh", JOB);
    home.set("LEDGER", &home.path("ledger").display().to_string());
    // A pipe that nobody writes to: whoever reads it waits until it is ended.
    let pipe = home.path("wake");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    home.set("WAKE", &pipe.display().to_string());
    home.set("TOW_GRACE_MILLIS", "700");
    home.set("TOW_DAEMON_IDLE_SECONDS", "1");
    home.write(
        "retry.yaml",
        "command: [sh, job.sh, third]\nretry: {when: [exit_code], max: 9}\n",
    );
    home.write(
        "basic.yaml",
        "command: [sh, job.sh, once]\nresources: {tier: basic, cpus_per_node: 2}\n",
    );
    Some((home, disk))
}

fn ledger(home: &Home) -> String {
    fs::read_to_string(home.path("ledger")).unwrap_or_default()
}

/// No attempt started twice, and no two of a run lived at once.
#[track_caller]
fn check_once(home: &Home, what: &str) {
    let ledger = ledger(home);
    let mut starts: HashMap<&str, u32> = HashMap::new();
    for line in ledger.lines() {
        let (word, attempt) = line.split_once(' ').unwrap();
        assert_ne!(word, "double", "{what}: two attempts alive at once: {line}");
        if word == "start" {
            *starts.entry(attempt).or_default() += 1;
        }
    }
    for (attempt, count) in starts {
        assert_eq!(count, 1, "{what}: attempt {attempt} started {count} times");
    }
}
