//! Rounds of submit, run, retry, preempt and abort, while the disk fills and empties between any
//! two steps and daemons are killed. A seeded tenth runs in the test command; `TOW_SOAK=1` runs all
//! 300.

use crate::{check_once, home_on, ledger};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};
use towline_testkit::campaign::{Seeded, is_soak, seed};
use towline_testkit::disk::Disk;
use towline_testkit::{Home, until};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Submit,
    Retry,
    Preempt,
    Abort,
    /// A run that fills the disk with its log.
    Fill,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario::Submit,
    Scenario::Retry,
    Scenario::Preempt,
    Scenario::Abort,
    Scenario::Fill,
];

/// It needs the whole machine, and goes before what is of the basic tier.
const EVICTS: [&str; 5] = ["--cpus", "2", "sh", "job.sh", "quick"];

struct Campaign {
    home: Home,
    disk: Disk,
    random: Seeded,
    promised: Vec<String>,
    seen: usize,
    fills: u32,
    kills: u32,
    refusals: u32,
    /// Times that a daemon was seen to wait for room.
    stalls: u32,
}

impl Campaign {
    /// Something happens to the disk or the daemon, or nothing does.
    fn weather(&mut self) {
        match self.random.next(10) {
            // Somebody else writes as fast as room is made.
            0 | 1 => {
                self.disk.leave_nothing_for_long();
                self.fills += 1;
            }
            2 | 3 => {
                let left = self
                    .random
                    .pick(&[0, 4 << 10, 24 << 10, 100 << 10, 400 << 10]);
                self.disk.leave(left);
                self.fills += 1;
            }
            4 => {
                let left = self.random.pick(&[0, 1, 3, 8]);
                self.disk.leave_files(left);
                self.fills += 1;
            }
            5 | 6 => self.disk.relieve(),
            7 | 8 => self.kills += u32::from(self.home.kill_daemon()),
            _ => {}
        }
    }

    /// Gives whoever has something to write the time to find no room for it.
    fn linger(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(400) {
            let status = self.home.tow(["daemon", "status", "--json"]);
            if status.code != 0 {
                return;
            }
            if !status.json()["status"]["trouble"].is_null() {
                self.stalls += 1;
                return;
            }
        }
    }

    /// An answer is a promise; a refusal changes nothing.
    fn submit(&mut self, words: &[&str]) -> Option<String> {
        let output = self.home.tow([&["submit"], words].concat());
        if output.code == 0 {
            self.promised.push(output.id());
            return Some(output.id());
        }
        assert!(matches!(output.code, 123 | 125), "{output:?}");
        self.refusals += 1;
        None
    }

    fn round(&mut self, scenario: Scenario) {
        self.weather();
        let run = match scenario {
            Scenario::Submit => self.submit(&["sh", "job.sh", "quick"]),
            Scenario::Retry => self.submit(&["-f", "retry.yaml"]),
            Scenario::Fill => self.submit(&["sh", "job.sh", "fill"]),
            Scenario::Abort => self.submit(&["sh", "job.sh", "long"]),
            Scenario::Preempt => self.submit(&["-f", "basic.yaml"]),
        };
        self.weather();
        match (scenario, &run) {
            (Scenario::Preempt, Some(_)) => drop(self.submit(&EVICTS)),
            (Scenario::Abort, Some(run)) => {
                // Refused or not heard, it is asked for again below.
                let _ = self.home.command(["abort", run]).spawn().unwrap().wait();
            }
            _ => {}
        }
        self.weather();
        self.linger();
        self.weather();
        self.settle(scenario);
    }

    /// There is room again: everything that was promised comes to its true end.
    fn settle(&mut self, scenario: Scenario) {
        self.disk.relieve();
        let what = format!("{scenario:?} in round with {:?}", self.promised.last());
        let runs = until(&format!("{what}: all runs to end"), || {
            // The filler's log takes the room it was given; ended runs make way for others.
            let runs = self.runs();
            for run in runs
                .iter()
                .filter(|run| scenario == Scenario::Abort && run["ended"].is_null())
            {
                let _ = self.home.tow(["abort", run["id"].as_str().unwrap()]);
            }
            let _ = self.home.tow(["wait", "--timeout", "2s"]);
            let runs = self.runs();
            // What was to evict it went first, or was refused: it waits for another that does.
            let waits = |run: &Value| {
                run["ended"].is_null() && run["state"] == "running" && run["attempt"] == 1
            };
            if scenario == Scenario::Preempt
                && runs.iter().all(|run| !run["ended"].is_null() || waits(run))
                && runs.iter().any(waits)
            {
                self.submit(&EVICTS).expect("there is room");
            }
            runs.iter()
                .all(|run| !run["ended"].is_null())
                .then_some(runs)
        });
        for id in &self.promised {
            let run = runs
                .iter()
                .find(|run| run["id"] == id.as_str())
                .unwrap_or_else(|| panic!("{what}: {id} was lost"));
            self.check(&what, id, run);
        }
        assert_eq!(
            runs.len(),
            self.promised.len(),
            "{what}: one that was refused is there"
        );
        check_once(&self.home, &what);
        let alive = self.home.job_processes();
        assert!(alive.is_empty(), "{what}: left running unseen: {alive:?}");
        if scenario == Scenario::Fill {
            self.make_room();
        }
    }

    /// Room for the next rounds, as a user would make it.
    fn make_room(&mut self) {
        until("all runs to be pruned", || {
            // Until the largest is old enough to go, there may be no room to strike the others.
            let pruned = self.home.tow(["prune", "--older-than", "1s", "--yes"]);
            assert!(matches!(pruned.code, 0 | 123), "{pruned:?}");
            self.runs().is_empty().then_some(())
        });
        self.seen += self.promised.len();
        self.promised.clear();
        fs::write(self.home.path("ledger"), "").unwrap();
    }

    fn runs(&self) -> Vec<Value> {
        self.home.tow(["ps", "--all", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .clone()
    }

    fn check(&self, what: &str, id: &str, run: &Value) {
        let attempt = run["attempt"].to_string();
        let has_ended = ledger(&self.home).contains(&format!("end {id} {attempt}\n"));
        let has_started = ledger(&self.home).contains(&format!("start {id} {attempt}\n"));
        match (
            run["state"].as_str().unwrap(),
            run["reason"].as_str().unwrap_or_default(),
        ) {
            ("succeeded", _) => assert!(has_ended, "{what}: {id} succeeded without having run"),
            ("cancelled", _) => {}
            // There was no room for its log or its folder.
            ("failed", "not_started") => assert!(!has_started, "{what}: {run}"),
            // The job itself could not write.
            ("failed", "exit_code") => assert!(has_started, "{what}: {run}"),
            other => panic!("{what}: {other:?}: {run}"),
        }
    }
}

#[test]
fn the_disk_fills_and_empties_at_random_moments() {
    let Some((home, disk)) = home_on(4 << 10) else {
        return;
    };
    let mut campaign = Campaign {
        home,
        disk,
        random: Seeded(seed() ^ 0xf011),
        promised: Vec::new(),
        seen: 0,
        fills: 0,
        kills: 0,
        refusals: 0,
        stalls: 0,
    };
    let rounds = if is_soak() { 300 } else { 30 };
    for number in 0..rounds {
        campaign.round(SCENARIOS[number % SCENARIOS.len()]);
    }
    campaign.seen += campaign.promised.len();
    let Campaign {
        seen,
        fills,
        kills,
        refusals,
        stalls,
        ..
    } = &campaign;
    println!(
        "a full disk: {rounds} rounds, {seen} runs, full {fills} times, {kills} daemons killed, \
            {stalls} waited for room, {refusals} refused; none lost, none doubled"
    );
    assert!(
        *seen > rounds / 2 && *fills > 10 && *kills > 5 && *stalls > 2,
        "the campaign did not try what it is for"
    );
}
