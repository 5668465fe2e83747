//! Secrets never leak by our hand: the job sees them, and nothing else ever does.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use towline_testkit::{Home, until};

const NAMED: &str = "canary-named-7f3a9c";
const INHERITED: &str = "canary-inherited-51d08b";

/// Files below `folder` that hold `needle`.
fn holding(folder: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, needle));
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(needle.len()).any(|window| window == needle.as_bytes())) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Words and environment of every process but the job's own.
fn processes_holding(needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for pid in towline_host::process::all().into_keys().filter(|pid| u32::try_from(*pid) != Ok(std::process::id())) {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
        let is_job = String::from_utf8_lossy(&environment).contains("TOW_RUN_ID=");
        if has(&words) || (has(&environment) && !is_job) {
            found.push(format!("{pid} {}", String::from_utf8_lossy(&words)));
        }
    }
    found
}

#[test]
fn the_job_sees_them_and_nothing_else_does() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("MY_NAMED", NAMED).with("WANDB_API_KEY", INHERITED);
    home.write("job.yaml", "command: [sh, job.sh]\nenvironment: {secrets: [MY_NAMED]}\n");
    // The job proves that it sees both without printing them, then stays.
    home.write("job.sh", "printf %s \"$MY_NAMED$WANDB_API_KEY\" | sha256sum; touch seen; while [ ! -e go ]; do sleep 0.02; done\n");
    let submitted = home.tow(["submit", "-f", "job.yaml"]).ok();
    let id = submitted.id();
    until("the job to run", || home.project().join("seen").exists().then_some(()));

    let mut said = format!("{}{}", submitted.stdout, submitted.stderr);
    for words in [
        vec!["show", &id, "--json"],
        vec!["show", &id, "--events"],
        vec!["ps", "--json"],
        vec!["query", &id, "--json"],
        vec!["history", &id],
        vec!["diff", &id, &id, "--json"],
        vec!["submit", "-f", "job.yaml", "--dry-run", "--json"],
        vec!["submit", "-f", "job.yaml", "--dry-run"],
        vec!["config", "show", "--json"],
        vec!["daemon", "status", "--json"],
        vec!["why", &id, "--json"],
        vec!["logs", &id],
    ] {
        let output = home.tow(&words);
        said += &format!("{words:?}\n{}\n{}\n", output.stdout, output.stderr);
    }
    for needle in [NAMED, INHERITED] {
        assert!(!said.contains(needle), "said aloud: {said}");
        assert_eq!(processes_holding(needle), Vec::<String>::new());
        // While the run lives, one file holds it, and only we can read that.
        let files = holding(&home.path("state"), needle);
        assert_eq!(files.len(), 1, "{files:?}");
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    }
    home.write("go", "");
    home.tow(["wait", &id]).ok();
    let expected = std::process::Command::new("sh").args(["-c", &format!("printf %s {NAMED}{INHERITED} | sha256sum")]).output().unwrap().stdout;
    assert_eq!(home.tow(["logs", &id]).raw, expected);
    for needle in [NAMED, INHERITED] {
        until("nothing on disk to hold it", || holding(&home.path("state"), needle).is_empty().then_some(()));
        assert_eq!(holding(&home.project(), needle), Vec::<String>::new());
    }
}

#[test]
fn after_a_crash_the_next_daemon_sweeps_up() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("HF_TOKEN", INHERITED);
    let id = home.tow(["submit", "sh", "-c", "touch seen; while [ ! -e go ]; do sleep 0.02; done"]).ok().id();
    until("the job to run", || home.project().join("seen").exists().then_some(()));
    home.kill_daemon();
    home.write("go", "");
    // The ending runner starts the next daemon, which records the end and drops the secret.
    home.wait_for_state(&id, "succeeded");
    until("nothing on disk to hold it", || holding(&home.path("state"), INHERITED).is_empty().then_some(()));
}

#[test]
fn a_resubmission_reads_them_anew_and_is_refused_without() {
    let mut home = Home::new(env!("CARGO_BIN_EXE_tow")).with("MY_NAMED", NAMED);
    let id = home.tow(["submit", "--secret", "MY_NAMED", "sh", "-c", "test -n \"$MY_NAMED\""]).ok().id();
    home.tow(["wait", &id]).ok();
    home.unset("MY_NAMED");
    let refused = home.tow(["resubmit", &id]);
    assert_eq!(refused.code, 123);
    assert!(refused.stderr.contains("MY_NAMED"), "{}", refused.stderr);
    home.set("MY_NAMED", "another");
    let again = home.tow(["resubmit", &id]).ok().id();
    home.tow(["wait", &again]).ok();
}
