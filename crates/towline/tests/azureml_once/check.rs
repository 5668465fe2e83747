//! What came of the rounds, held against the ledger and the service.

use crate::campaign::{Campaign, Round};
use crate::faults::{Fault, Scenario};
use crate::lab::{FLAVOURS, Lab};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};
use towline_testkit::campaign::Shape;
use towline_testkit::until_within;

/// Longer than the service leaves to nodes that it takes away.
const GONE: Duration = Duration::from_secs(5);

impl Round {
    pub(crate) fn is_mine(&self, run: &Value) -> bool {
        run["id"]
            .as_str()
            .and_then(|id| id.strip_prefix(&self.name))
            .is_some_and(|rest| rest.starts_with('-'))
    }
}

impl Campaign {
    /// Things go on, and everything that was promised comes to its true end.
    pub(crate) fn settle(&mut self) {
        let of = |run: &Value| {
            self.rounds[self.checked..]
                .iter()
                .find(|round| round.is_mine(run))
        };
        // What a killed client had sent may still be on its way in; runs that nobody ended are
        // ended by the user now.
        let mut taken = BTreeSet::new();
        // Nodes that were taken away before a first attempt began are no loss to it; those of one
        // that is being ended count.
        let mut seen: HashMap<String, Instant> = HashMap::new();
        let mut is_first = |id: &str| {
            let alive = self.lab.attempts("start", id) == [1] && Lab::has_rank(id, 1);
            alive
                && seen
                    .entry(id.to_owned())
                    .or_insert_with(Instant::now)
                    .elapsed()
                    > GONE
        };
        until_within(
            120,
            "all runs to end, the long ones when they are told to",
            || {
                let open = self
                    .lab
                    .home
                    .tow(["ps", "--state", "active", "--all", "--json"])
                    .ok()
                    .json();
                let open = open["runs"].as_array().unwrap();
                for run in open {
                    let id = run["id"].as_str().unwrap();
                    match of(run).map(|round| round.scenario) {
                        Some(scenario) if scenario.is_long() && run["cancel_requested"] != true => {
                            drop(self.lab.home.tow(["abort", id]));
                        }
                        // Its client was killed before it could tell which run has its nodes taken
                        // away.
                        Some(Scenario::Preempt) if is_first(id) && taken.insert(id.to_owned()) => {
                            self.lab.aml.preempt(id);
                        }
                        _ => {}
                    }
                }
                open.is_empty().then_some(())
            },
        );
        self.lab.wait_for_all("the campaign");
        let runs = self.lab.runs();
        let what = format!("rounds {}..{}", self.checked, self.rounds.len());
        self.lab.nothing_was_doubled(&what);
        self.lab.nothing_is_left(&what);
        self.every_job_is_known(&runs);
        assert_eq!(
            self.lab.aml.kept_secrets(),
            Vec::<String>::new(),
            "{what}: secrets are left in the vault"
        );
        let mut faults = 0;
        let mut passed = Vec::new();
        for round in &self.rounds[self.checked..] {
            self.check(round, &runs);
            if round.token.as_ref().is_some_and(|token| !token.exists()) {
                faults += 1;
                passed.extend(round.fault.point());
            }
        }
        let asked = self.rounds[self.checked..]
            .iter()
            .filter(|round| matches!(round.fault, Fault::Call { .. }))
            .count();
        // One that was left over from earlier rounds may have happened since.
        let left = self.lab.aml.troubles_left();
        (self.faults, self.left) = (
            (self.faults + faults + asked + self.left).saturating_sub(left),
            left,
        );
        self.passed.extend(passed);
        self.checked = self.rounds.len();
    }

    /// Each job of the service is a run of the history, by its own id, and both say the same of it.
    fn every_job_is_known(&self, runs: &[Value]) {
        for (job, word) in self.lab.aml.jobs() {
            let Some(run) = runs.iter().find(|run| run["id"] == job.as_str()) else {
                panic!("job {job} ({word}) is no run of the history")
            };
            let state = run["state"].as_str().unwrap();
            // A guard that is shot after the end was written cannot say so, and other nodes have
            // lost their leader then.
            let round = self.rounds.iter().find(|round| round.is_mine(run));
            let is_lost = self.shot.contains(&job)
                || round.is_some_and(|round| round.fault.is_there() && round.shape == Shape::Gang);
            let fits = match state {
                "succeeded" => word == "Completed" || is_lost && word == "Failed",
                "cancelled" => word == "Canceled" || word == "Completed" || word == "Failed",
                _ => word == "Failed" || self.shot.contains(&job),
            };
            assert!(
                fits,
                "the service says {word}, and the history {state}: {run}"
            );
        }
    }

    fn check(&self, round: &Round, runs: &[Value]) {
        let what = format!("{round:?}");
        assert!(FLAVOURS.contains(&round.flavour));
        let mine: Vec<&Value> = runs.iter().filter(|run| round.is_mine(run)).collect();
        for id in &round.promised {
            assert!(
                mine.iter().any(|run| run["id"] == id.as_str()),
                "{what}: {id} was lost"
            );
            assert!(
                self.lab.aml.status(id).is_some() || self.was_withdrawn(round, id),
                "{what}: the service has no job {id}"
            );
        }
        assert!(
            mine.len() <= round.asked,
            "{what}: {} runs made, {} asked for",
            mine.len(),
            round.asked
        );
        for run in mine {
            self.check_run(&what, round, run);
        }
        for id in &round.adopted {
            self.lab.other.tow(["wait", id, "--timeout", "60s"]);
            assert_eq!(
                self.lab.other.state_of(id),
                self.lab.home.state_of(id),
                "{what}: both machines say the same of {id}: {}",
                self.lab.other.show(id)
            );
        }
    }

    /// Ended before it was carried over.
    fn was_withdrawn(&self, round: &Round, id: &str) -> bool {
        round.scenario.is_long() && !self.lab.has_started(id)
    }

    fn check_run(&self, what: &str, round: &Round, run: &Value) {
        let id = run["id"].as_str().unwrap();
        let (state, reason) = (
            run["state"].as_str().unwrap(),
            run["reason"].as_str().unwrap_or_default(),
        );
        let attempt = u32::try_from(run["attempt"].as_u64().unwrap()).unwrap();
        let (starts, ends) = (self.lab.attempts("start", id), self.lab.attempts("end", id));
        let shown = || {
            format!(
                "{what}: {run}\nstarted {starts:?}, ended {ends:?}, the service: {:?} {}",
                self.lab.aml.states(id),
                self.lab.aml.last_words(id)
            )
        };
        assert!(
            starts.iter().all(|started| *started <= attempt),
            "{}",
            shown()
        );
        let is_hit = round.fault.is_there() || self.shot.contains(id);
        match state {
            "succeeded" => {
                assert!(
                    !round.scenario.is_long() && ends.last() == Some(&attempt),
                    "{}",
                    shown()
                );
                self.log_is_whole(what, id);
            }
            "cancelled" => assert!(round.scenario.is_long(), "{}", shown()),
            // Only a killed runner may fail a run. Killed before its claim it has begun nothing;
            // after the end of an attempt that was to be tried again, that end is the last.
            "failed" => {
                let began_nothing = reason == "not_started" && attempt == 0 && starts.is_empty();
                let not_again = round.scenario == Scenario::Retry && reason == "exit_code";
                assert!(
                    is_hit && (reason == "node_failed" || began_nothing || not_again),
                    "{}",
                    shown()
                );
            }
            _ => panic!("{}", shown()),
        }
        if !is_hit && !round.scenario.is_long() {
            let expected = match round.scenario {
                Scenario::Retry => 3,
                Scenario::Preempt => 2,
                _ => 1,
            };
            let mut all: Vec<u32> = (1..=expected).collect();
            if round.scenario == Scenario::Preempt && starts.first() == Some(&2) {
                // Its nodes were taken away between the claim and the start of its ranks.
                all.remove(0);
            }
            assert_eq!((attempt, &starts), (expected, &all), "{}", shown());
        }
    }

    fn log_is_whole(&self, what: &str, id: &str) {
        let lines: Vec<String> = (0..200)
            .map(|line| format!("line {line} of {id}\n"))
            .collect();
        let whole = lines.concat();
        let log = self.lab.home.tow(["logs", id, "--rank", "0"]).ok().stdout;
        assert!(
            log.ends_with(&whole),
            "{what}: the log of {id} is not whole:\n{log}"
        );
    }
}
