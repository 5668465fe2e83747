//! Exactly once: the shipped program is killed at every named point of submit, abort, resubmit,
//! retry and preempt, and at random moments; then things go on. No job is lost, no attempt starts
//! twice, no two attempts of a run live at once, none is left running unseen.
//!
//! A seeded tenth runs here; `TOW_SOAK=1` runs all.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::time::{Duration, Instant};
use towline_host::crash::POINTS;
use towline_host::process;
use towline_testkit::campaign::{Seeded, is_soak, seed};
use towline_testkit::{Home, Output, until};

/// Keeps a ledger: every start and end, and whether another attempt was alive.
const JOB: &str = r#"#!/bin/sh
echo "start $TOW_RUN_ID $TOW_ATTEMPT" >> "$LEDGER"
exec 9>"$LEDGER.$TOW_RUN_ID.lock"
flock -n 9 || echo "double $TOW_RUN_ID $TOW_ATTEMPT" >> "$LEDGER"
case "$1" in
  quick) sleep 0.02 ;;
  long) sleep 300 ;;
  third) [ "$TOW_ATTEMPT" -ge 3 ] || exit 1 ;;
  once) [ "$TOW_ATTEMPT" -ge 2 ] || sleep 300 ;;
esac
echo "end $TOW_RUN_ID $TOW_ATTEMPT" >> "$LEDGER"
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Submit,
    Abort,
    Resubmit,
    Retry,
    Preempt,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario::Submit,
    Scenario::Abort,
    Scenario::Resubmit,
    Scenario::Retry,
    Scenario::Preempt,
];

struct Campaign {
    home: Home,
    kills: u32,
    rounds: u32,
    /// Runs whose submission was acknowledged.
    promised: Vec<String>,
    /// Runs whose abort was acknowledged: nobody asks for it again.
    aborted: BTreeSet<String>,
    seen_runs: usize,
    /// Points at which somebody was killed.
    passed: BTreeSet<String>,
}

impl Campaign {
    fn new() -> Self {
        let mut home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
        home.configure("clusters:\n  local: {kind: local, cpus: 2}\n");
        home.write("job.sh", JOB);
        let ledger = home.path("ledger").display().to_string();
        home.set("LEDGER", &ledger);
        home.set("TOW_GRACE_MILLIS", "700");
        home.write(
            "retry.yaml",
            "command: [sh, job.sh, third]\nretry: {when: [exit_code, node_failed], max: 9}\n",
        );
        home.write(
            "once.yaml",
            "command: [sh, job.sh, once]\nretry: {when: [node_failed], max: 9}\n",
        );
        home.write(
            "basic.yaml",
            "command: [sh, job.sh, once]\nresources: \
            {tier: basic, cpus_per_node: 2}\nretry: {when: [node_failed], max: 9}\n",
        );
        Self {
            home,
            kills: 0,
            rounds: 0,
            promised: Vec::new(),
            aborted: BTreeSet::new(),
            seen_runs: 0,
            passed: BTreeSet::new(),
        }
    }

    fn ledger(&self) -> String {
        fs::read_to_string(self.home.path("ledger")).unwrap_or_default()
    }

    fn starts(&self, run: &str) -> usize {
        self.ledger()
            .lines()
            .filter(|line| line.starts_with(&format!("start {run} ")))
            .count()
    }

    fn has_started(&self, run: &str) -> bool {
        self.starts(run) > 0
    }

    fn arm(&mut self, point: &str, pass: usize) {
        let token = self.home.path("token");
        fs::write(&token, "").unwrap();
        self.home.set("TOW_CRASH_AT", &format!("{point}@{pass}"));
        self.home
            .set("TOW_CRASH_ONCE", &token.display().to_string());
    }

    /// Waits for the kill, or for all to have ended without passing there.
    fn disarm(&mut self, what: &str, point: &str) {
        let mut quiet_since = None;
        until(&format!("{what}: the kill or the end"), || {
            if !self.home.path("token").exists() {
                return Some(());
            }
            let is_quiet = self.home.tow(["ps", "--state", "active", "--json"]).json()["runs"]
                .as_array()
                .is_some_and(Vec::is_empty);
            // An end is told as soon as it is written: whoever wrote it may be about to pass the
            // point.
            quiet_since = is_quiet.then(|| quiet_since.unwrap_or_else(Instant::now));
            quiet_since
                .is_some_and(|since| since.elapsed() > Duration::from_millis(300))
                .then_some(())
        });
        self.home.unset("TOW_CRASH_AT");
        self.home.unset("TOW_CRASH_ONCE");
        if !self.home.path("token").exists() {
            self.kills += 1;
            self.passed.insert(point.to_owned());
        }
        let _ = fs::remove_file(self.home.path("token"));
    }

    /// A submission as a user would do it; an answer is a promise.
    fn submit(&mut self, words: &[&str]) -> Output {
        let output = self.home.tow([&["submit"], words].concat());
        if output.code == 0 {
            self.promised.push(output.id());
        }
        output
    }

    fn round(&mut self, scenario: Scenario, point: &str, pass: usize) {
        self.rounds += 1;
        // A daemon that is told where to die.
        self.home.tow(["daemon", "stop"]);
        let lock = self.home.state().daemon_lock();
        until("the daemon to leave", || {
            (!towline_host::lock::is_held(&lock).unwrap()).then_some(())
        });
        self.arm(point, pass);
        let before = self.promised.len();
        match scenario {
            Scenario::Submit => drop(self.submit(&["sh", "job.sh", "quick"])),
            Scenario::Retry => drop(self.submit(&["-f", "retry.yaml"])),
            Scenario::Abort | Scenario::Resubmit => self.abort_or_resubmit(scenario, point),
            Scenario::Preempt => {
                let basic = self.submit(&["-f", "basic.yaml"]);
                if basic.code == 0 {
                    until("the basic run to start or end", || {
                        (self.has_started(&basic.id()) || self.home.daemon().is_none())
                            .then_some(())
                    });
                }
                self.submit(&["--cpus", "2", "sh", "job.sh", "quick"]);
            }
        }
        let what = format!("{scenario:?} killed at {point}@{pass}");
        self.disarm(&what, point);
        self.settle(&what, before, scenario, point.starts_with("runner."));
    }

    /// An abort as a user would do it; an answer is a promise, too.
    fn abort(&mut self, run: &str) {
        if self.home.tow(["abort", run]).code == 0 {
            self.aborted.insert(run.to_owned());
        }
    }

    fn abort_or_resubmit(&mut self, scenario: Scenario, point: &str) {
        let long = self.submit(&["sh", "job.sh", "long"]);
        if long.code != 0 {
            return;
        }
        let id = long.id();
        // Its runner may be killed before anything of it starts, which ends it.
        let has_ended = || !self.home.show(&id)["ended"].is_null();
        until("the long run to start or its daemon to die", || {
            (self.has_started(&id) || self.home.daemon().is_none() || has_ended()).then_some(())
        });
        // The search that finds nobody at the end finds somebody who is there.
        assert!(
            point.starts_with("runner.")
                || !self.has_started(&id)
                || !self.home.job_processes().is_empty(),
            "{id} runs, and nobody is seen"
        );
        if scenario == Scenario::Abort {
            self.abort(&id);
        } else {
            // It waits for the end of the old one: a wish that was lost would keep it for ever.
            let mut child = self.home.spawn(["resubmit", &id]);
            until(&format!("the resubmission of {id} to be done"), || {
                child.try_wait().unwrap()
            });
            let output = Output::from(child.wait_with_output().unwrap());
            if output.code == 0 {
                let new = output.id();
                self.promised.push(new.clone());
                self.aborted.insert(id);
                until("the new run to start or the kill", || {
                    (self.has_started(&new) || !self.home.path("token").exists()).then_some(())
                });
                self.abort(&new);
            }
        }
    }

    /// Things go on, and everything that was promised has come to its true end. Only a kill of what
    /// runs an attempt `may_fail` it.
    fn settle(&mut self, what: &str, before: usize, scenario: Scenario, may_fail: bool) {
        // What a killed client had sent may still be on its way in, so ask until all is quiet.
        let runs = until(&format!("{what}: all runs to end"), || {
            // Long runs that nobody ended yet are ended by the user now.
            if matches!(scenario, Scenario::Abort | Scenario::Resubmit) {
                let open = self
                    .home
                    .tow(["ps", "--state", "active", "--all", "--json"])
                    .ok()
                    .json();
                for id in open["runs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|run| run["id"].as_str().unwrap())
                {
                    if !self.aborted.contains(id) {
                        self.home.tow(["abort", id]).ok();
                    }
                }
            }
            self.home.tow(["wait", "--timeout", "2s"]);
            let runs = self.home.tow(["ps", "--all", "--json"]).ok().json()["runs"]
                .as_array()
                .unwrap()
                .clone();
            runs.iter()
                .all(|run| !run["ended"].is_null())
                .then_some(runs)
        });
        let expected = match scenario {
            Scenario::Submit | Scenario::Retry | Scenario::Abort => 1,
            Scenario::Resubmit | Scenario::Preempt => 2,
        };
        let made = runs.len() - self.seen_runs;
        let promised = self.promised.len() - before;
        assert!(
            made >= promised && made <= expected,
            "{what}: {made} runs made, {promised} promised, at most {expected} asked for"
        );
        for id in &self.promised[before..] {
            assert!(
                runs.iter().any(|run| run["id"] == id.as_str()),
                "{what}: {id} was lost"
            );
        }
        self.check_ledger(what, &runs[..made], scenario, may_fail);
        self.seen_runs = runs.len();
        let alive = self.home.job_processes();
        assert!(alive.is_empty(), "{what}: left running unseen: {alive:?}");
    }

    fn check_ledger(
        &self,
        what: &str,
        runs: &[serde_json::Value],
        scenario: Scenario,
        may_fail: bool,
    ) {
        let ledger = self.ledger();
        let mut starts: HashMap<(&str, &str), u32> = HashMap::new();
        for line in ledger.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_ne!(
                words[0], "double",
                "{what}: two attempts alive at once: {line}"
            );
            if words[0] == "start" {
                *starts.entry((words[1], words[2])).or_default() += 1;
            }
        }
        for ((run, attempt), count) in &starts {
            assert_eq!(
                *count, 1,
                "{what}: attempt {attempt} of {run} started {count} times"
            );
        }
        for run in runs {
            let id = run["id"].as_str().unwrap();
            let (state, reason) = (
                run["state"].as_str().unwrap(),
                run["reason"].as_str().unwrap_or_default(),
            );
            let attempt = run["attempt"].to_string();
            match state {
                "succeeded" => {
                    assert!(
                        ledger.contains(&format!("end {id} {attempt}\n")),
                        "{what}: {id} succeeded without having run"
                    );
                }
                // Only what the user asked for may be cancelled, and only a killed runner may fail
                // a run.
                "cancelled" => assert!(
                    matches!(scenario, Scenario::Abort | Scenario::Resubmit),
                    "{what}: {id} was cancelled"
                ),
                "failed" => assert!(may_fail && reason == "node_failed", "{what}: {id} {run}"),
                other => panic!("{what}: {id} is {other}"),
            }
            if matches!(scenario, Scenario::Retry | Scenario::Preempt) && run["tier"] == "basic"
                || scenario == Scenario::Retry
            {
                assert_eq!(
                    state, "succeeded",
                    "{what}: {id} is retried until it is done: {run}"
                );
            }
            // No attempt is lost with a client or a daemon: each starts once, and none for nothing.
            let expected = match scenario {
                Scenario::Submit => Some(1),
                Scenario::Retry => Some(3),
                _ => None,
            };
            assert!(
                may_fail || expected.is_none_or(|expected| self.starts(id) == expected),
                "{what}: {id} started {} times: {run}",
                self.starts(id)
            );
        }
    }
}

#[test]
fn killed_at_every_named_point() {
    let mut random = Seeded(seed());
    let mut campaign = Campaign::new();
    let passes: &[usize] = if is_soak() {
        &[1, 2, 3, 1, 2, 1, 4]
    } else {
        &[1]
    };
    let mut cases: Vec<(Scenario, &str, usize)> = Vec::new();
    for pass in passes {
        for scenario in SCENARIOS {
            cases.extend(POINTS.iter().map(|point| (scenario, *point, *pass)));
        }
    }
    if !is_soak() {
        // A tenth by kind: every point once, in a scenario drawn by the seed, and the rest left to
        // the soak.
        cases = POINTS
            .iter()
            .map(|point| (scenario_for(point, &mut random), *point, 1))
            .collect();
    }
    for (scenario, point, pass) in &cases {
        campaign.round(*scenario, point, *pass);
    }
    println!(
        "exactly once: {} rounds, {} kills, {} runs, none lost, none doubled",
        campaign.rounds, campaign.kills, campaign.seen_runs
    );
    let missed: Vec<_> = POINTS
        .iter()
        .filter(|point| !campaign.passed.contains(**point))
        .collect();
    assert!(missed.is_empty(), "nobody was killed at {missed:?}");
    assert!(
        !is_soak() || campaign.kills >= 500,
        "only {} kills happened",
        campaign.kills
    );
}

/// A scenario that passes this point.
fn scenario_for(point: &str, random: &mut Seeded) -> Scenario {
    let fits: &[Scenario] = match point {
        point if point.contains("preempt") => &[Scenario::Preempt],
        point if point.contains("requeue") => &[Scenario::Retry, Scenario::Preempt],
        point if point.contains("resubmit") => &[Scenario::Resubmit],
        point if point.contains("cancel") => &[Scenario::Abort, Scenario::Resubmit],
        _ => &[Scenario::Submit, Scenario::Retry, Scenario::Preempt],
    };
    fits[random.next(fits.len())]
}

/// The daemon, guards and runners are shot at random moments while work goes through.
#[test]
fn shot_at_random_moments() {
    let mut random = Seeded(seed() ^ 0xbad);
    let campaign = Campaign::new();
    let home = &campaign.home;
    let shots = if is_soak() { 150 } else { 15 };
    let mut promised = Vec::new();
    let (mut hit, mut pairs) = (0, 0);
    for shot in 0..shots {
        for _ in 0..=random.next(3) {
            let output = home.tow(["submit", "-f", "retry.yaml"]);
            if output.code == 0 {
                promised.push(output.id());
            }
        }
        let targets: Vec<i32> = if shot % 3 == 2 {
            // A guard with its runner: nobody is left to say how their attempt ended.
            let run = home.tow(["submit", "-f", "once.yaml"]).ok().id();
            promised.push(run.clone());
            let carriers = until("it to be at work", || carriers(home, &run));
            pairs += usize::from(carriers.len() == 2);
            carriers
        } else {
            let mut all: Vec<i32> = home
                .runner_processes()
                .into_iter()
                .map(|(pid, _)| pid)
                .collect();
            all.extend(home.daemon());
            all.get(random.next(all.len()))
                .copied()
                .into_iter()
                .collect()
        };
        for pid in &targets {
            process::signal(*pid, rustix::process::Signal::KILL);
        }
        hit += usize::from(!targets.is_empty());
    }
    assert!(
        hit * 2 > shots && pairs > 0,
        "only {hit} of {shots} shots hit somebody, {pairs} a guard with its runner"
    );
    let waited = home.tow(["wait", "--timeout", "55s"]);
    assert_ne!(
        waited.code,
        124,
        "not all came to an end\n{}",
        home.tow(["ps"]).stdout
    );
    let runs = home.tow(["ps", "--all", "--json"]).ok().json()["runs"]
        .as_array()
        .unwrap()
        .clone();
    for id in &promised {
        let run = runs
            .iter()
            .find(|run| run["id"] == id.as_str())
            .unwrap_or_else(|| panic!("{id} was lost"));
        assert_eq!(run["state"], "succeeded", "{run}");
    }
    assert_eq!(runs.len(), promised.len());
    campaign.check_ledger("random shots", &runs, Scenario::Retry, true);
    assert!(home.job_processes().is_empty());
    println!(
        "random shots: {hit} kills, {pairs} of them of a guard with its runner, {} runs, none \
            lost, none doubled",
        runs.len()
    );
}

/// The runner that a run has now, and its guard where that still lives.
fn carriers(home: &Home, run: &str) -> Option<Vec<i32>> {
    let mark = format!("TOW_RUN_ID={run}");
    let is_marked = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
            bytes
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
    };
    let rank = home.job_processes().into_iter().find(is_marked)?;
    let known: BTreeSet<i32> = home
        .runner_processes()
        .into_iter()
        .map(|(pid, _)| pid)
        .collect();
    let above = std::iter::successors(Some(rank), |pid| {
        process::facts(*pid)
            .map(|facts| facts.parent)
            .filter(|parent| *parent > 1)
    });
    Some(above.filter(|pid| known.contains(pid)).collect())
        .filter(|found: &Vec<i32>| !found.is_empty())
}
