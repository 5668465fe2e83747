//! The real `tow`, one module per verb: codes, stdout apart from stderr, `--json` shapes, and what
//! the verb did or did not change.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod abort;
mod act;
mod after;
mod clusters;
mod completions;
mod config;
mod daemon;
mod diff;
mod doctor;
mod edit;
mod get;
mod help;
mod history;
mod hold;
mod ids;
mod import;
mod import_jobs;
mod logs;
mod nodes;
mod output;
mod prune;
mod ps;
mod query;
mod resubmit;
mod run;
mod scratch;
mod seeds;
mod show;
mod ssh;
mod submit;
mod sweep;
mod sweep_logs;
mod tag;
mod trust;
mod unreadable;
mod wait;
mod why;

use rustix::process::Signal;
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use towline_testkit::{Home, Output, until};

/// What every run's object holds at least.
const RUN_KEYS: [&str; 9] = [
    "id",
    "name",
    "cluster",
    "state",
    "reason",
    "exit_code",
    "attempt",
    "created",
    "ended",
];

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}

/// A machine that says it has two GPUs and four CPUs.
fn home_with_gpus() -> Home {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 4, gpus: 2}\n");
    home
}

/// A machine of one CPU, taken by a run that lasts: what is submitted now stays queued.
fn busy_home() -> (Home, String) {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let holder = home
        .tow(["submit", "--name", "holder", "sleep", "300"])
        .ok()
        .id();
    home.wait_for_state(&holder, "running");
    (home, holder)
}

/// Submits and waits for the end; the id.
#[track_caller]
fn ended(home: &Home, words: &[&str]) -> String {
    let id = home.tow([&["submit"], words].concat()).ok().id();
    home.tow(["wait", &id]);
    // What `wait` says has tests of its own.
    until(&format!("{id} to end"), || {
        runs(home, &[&id])
            .iter()
            .all(|run| !run["ended"].is_null())
            .then_some(())
    });
    id
}

/// Shell text that waits until the project has a file of that name.
fn gate(name: &str) -> String {
    format!("until [ -e {name} ]; do sleep 0.01; done")
}

/// Everything in the history, newest first.
#[track_caller]
fn runs(home: &Home, words: &[&str]) -> Vec<Value> {
    home.tow([&["ps", "--json"], words].concat()).ok().json()["runs"]
        .as_array()
        .unwrap()
        .clone()
}

fn ids(runs: &[Value]) -> Vec<&str> {
    runs.iter().map(|run| run["id"].as_str().unwrap()).collect()
}

#[track_caller]
fn assert_is_run(run: &Value) {
    for key in RUN_KEYS {
        assert!(run.get(key).is_some(), "`{key}` is missing: {run}");
    }
    let state = run["state"].as_str().unwrap();
    assert_eq!(state, state.to_lowercase());
    assert!(
        run["id"].is_string()
            && run["name"].is_string()
            && run["cluster"].is_string()
            && run["created"].is_string(),
        "{run}"
    );
    assert!(run["attempt"].is_u64(), "{run}");
}

#[track_caller]
fn assert_matches(text: &str, pattern: &str) {
    assert!(
        regex::Regex::new(pattern).unwrap().is_match(text),
        "{text:?} does not match {pattern}"
    );
}

/// The short form that tables and hints show.
fn short(id: &str) -> &str {
    &id[id.len() - 5..]
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

fn send(child: &Child, signal: Signal) {
    towline_host::process::signal(i32::try_from(child.id()).unwrap(), signal);
}

/// Reads the child's stdout until it holds `text`.
#[track_caller]
fn read_until(child: &mut Child, text: &str) -> Vec<u8> {
    let stdout = child.stdout.as_mut().unwrap();
    let mut seen = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).contains(text) {
        assert_eq!(
            stdout.read(&mut byte).unwrap(),
            1,
            "it ended before it said {text:?}: {:?}",
            String::from_utf8_lossy(&seen)
        );
        seen.push(byte[0]);
    }
    seen
}

/// Starts `tow` in a terminal. What it prints on stdout and stderr comes together.
fn spawn_in_terminal(home: &Home, words: &[&str]) -> Child {
    let tow = home.command(words);
    let line = std::iter::once(tow.get_program())
        .chain(tow.get_args())
        .map(|word| word.to_str().unwrap().to_owned())
        .collect::<Vec<_>>()
        .join(" ");
    let variables = tow.get_envs();
    std::process::Command::new("script")
        .args(["-qefc", &line, "/dev/null"])
        .current_dir(home.project())
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a spawned `tow`; `before` is what was read of its stdout already.
fn finish(child: Child, mut before: Vec<u8>) -> Output {
    let output = child.wait_with_output().unwrap();
    before.extend(&output.stdout);
    Output {
        code: output
            .status
            .code()
            .unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0)),
        stdout: String::from_utf8_lossy(&before).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        raw: before,
    }
}

/// A run of that state which asks to be told apart by name.
#[track_caller]
fn wait_for_name(home: &Home, name: &str, state: &str) -> String {
    until(&format!("{name} to be {state}"), || {
        let runs = runs(home, &[]);
        runs.iter()
            .find(|run| run["name"] == name && run["state"] == state)
            .map(|run| run["id"].as_str().unwrap().to_owned())
    })
}
