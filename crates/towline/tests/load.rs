//! Load: ten thousand queued runs while short ones go through; `ps` and `submit` stay quick and
//! memory bounded. A tenth here, all of it with `TOW_SOAK=1`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::too_many_lines)]

use std::fs;
use std::time::{Duration, Instant};
use towline_testkit::Home;
use towline_testkit::campaign::is_soak;

fn scale(full: usize) -> usize {
    if is_soak() { full } else { full / 10 }
}

fn resident_megabytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn ten_thousand_wait_while_a_thousand_run() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    home.configure("clusters:\n  local: {kind: local, cpus: 2, gpus: 1}\n");
    // One holds the GPU that the queued ones wait for; short ones pass them by on the CPUs.
    home.tow(["submit", "-n", "1", "--name", "holder", "sleep", "1000"])
        .ok();
    let queued = scale(10_000);
    let sweep = home
        .tow([
            "submit",
            "-n",
            "1",
            "--sweep",
            &format!("i=1-{queued}"),
            "true",
        ])
        .ok()
        .id();
    let short = scale(1_000);
    let begun = Instant::now();
    let shorts = home
        .tow([
            "submit",
            "--tier",
            "premium",
            "--sweep",
            &format!("i=1-{short}"),
            "true",
        ])
        .ok()
        .id();
    let mut slowest = Duration::ZERO;
    let mut asked = 0;
    loop {
        for words in [vec!["ps"], vec!["submit", "--tier", "premium", "true"]] {
            let at = Instant::now();
            home.tow(&words).ok();
            slowest = slowest.max(at.elapsed());
            asked += 1;
        }
        let left = home
            .tow(["ps", &shorts, "--state", "active", "--json"])
            .ok()
            .json();
        if left["runs"].as_array().unwrap().is_empty() {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "the short ones do not get through"
        );
    }
    let done = home
        .tow(["ps", &shorts, "--state", "succeeded", "--all", "--json"])
        .ok()
        .json();
    assert_eq!(
        done["runs"].as_array().unwrap().len(),
        short,
        "every short one got through"
    );
    let daemon = home.daemon().unwrap();
    let megabytes = resident_megabytes(daemon);
    assert!(megabytes < 100, "the daemon holds {megabytes} MB");
    let waiting = home.tow(["ps", &sweep, "--json"]).ok().json()["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["state"] == "queued")
        .count();
    assert_eq!(waiting, queued, "nobody jumped the queue for the GPU");
    // A noisy machine may stall one call; a queue that is walked for each would stall all of them.
    assert!(
        slowest < Duration::from_secs(2),
        "the slowest of {asked} calls took {slowest:?}"
    );
    println!(
        "load: {queued} queued, {short} run in {:?}, daemon {megabytes} MB, slowest of {asked} \
            calls {slowest:?}",
        begun.elapsed()
    );
    let at = Instant::now();
    home.tow(["abort", &sweep]).ok();
    assert!(at.elapsed() < Duration::from_secs(20));
    home.tow(["wait", &sweep]);
    assert_eq!(
        home.tow(["ps", &sweep, "--state", "cancelled", "--json"])
            .json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        queued
    );
}
