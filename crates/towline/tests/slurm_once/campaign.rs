//! Rounds that overlap, each with its fault; then all is let go on, and what came of it is held
//! against the ledger.

use crate::faults::{AT_RANDOM, Fault, Scenario, points, scenarios};
use crate::lab::Lab;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use towline_host::process;
use towline_testkit::campaign::{Seeded, Shape, is_soak, seed};
use towline_testkit::real::slurm::Options;
use towline_testkit::{Output, until};

/// What was asked for in one round.
#[derive(Debug)]
struct Round {
    scenario: Scenario,
    fault: Fault,
    shape: Shape,
    /// The name of its runs.
    name: String,
    /// Whether a death of its node leads to another attempt.
    is_sturdy: bool,
    /// Runs whose submission was acknowledged, and how often one was asked for.
    promised: Vec<String>,
    asked: usize,
    /// Gone when somebody was killed at the point.
    token: Option<PathBuf>,
}

impl Round {
    fn is_mine(&self, run: &Value) -> bool {
        run["id"]
            .as_str()
            .and_then(|id| id.strip_prefix(&self.name))
            .is_some_and(|rest| rest.starts_with('-'))
    }
}

struct Campaign {
    lab: Lab,
    random: Seeded,
    rounds: Vec<Round>,
    checked: usize,
    kills: u32,
    passed: BTreeSet<&'static str>,
    /// Runs of which a head or a runner was shot.
    shot: BTreeSet<String>,
}

impl Campaign {
    fn new(seed: u64) -> Self {
        let lab = Lab::new(&Options {
            gpus: 0,
            ..Options::default()
        });
        Self {
            lab,
            random: Seeded(seed),
            rounds: Vec::new(),
            checked: 0,
            kills: 0,
            passed: BTreeSet::new(),
            shot: BTreeSet::new(),
        }
    }

    /// What is to die at a point has its own token, so that rounds overlap.
    fn arm(&mut self, fault: Fault) -> Option<PathBuf> {
        let point = fault.point()?;
        let name = format!("token-{}", self.rounds.len());
        let token = self.lab.slurm.home("alice").join(&name);
        // Whoever runs there is to remove it.
        self.lab.slurm.exec("login", "alice", ["touch", &name]).ok();
        let (prefix, place) = match fault {
            Fault::Here(_) => ("TOW_", token.display().to_string()),
            _ => ("TOW_FAR_", format!("/home/alice/{name}")),
        };
        self.lab.home.set(&format!("{prefix}CRASH_AT"), point);
        self.lab.home.set(&format!("{prefix}CRASH_ONCE"), &place);
        Some(token)
    }

    fn round(&mut self, scenario: Scenario, fault: Fault) {
        if fault.point().is_some() {
            // A daemon that is told where to die.
            self.lab.stop_daemon();
        }
        let token = self.arm(fault);
        let is_sturdy = matches!(scenario, Scenario::Retry | Scenario::Limit)
            || scenario == Scenario::Submit && self.random.next(2) == 0;
        let file = match scenario {
            Scenario::Submit if is_sturdy => "sturdy.yaml",
            Scenario::Submit => "quick.yaml",
            Scenario::Abort | Scenario::Resubmit => "long.yaml",
            Scenario::Retry => "third.yaml",
            Scenario::Limit => "limit.yaml",
        };
        let name = format!("r{}", self.rounds.len());
        let shape = if scenario == Scenario::Limit {
            Shape::One
        } else {
            self.random
                .pick(&[Shape::One, Shape::One, Shape::Sweep, Shape::Gang])
        };
        let asked = shape.runs("").len();
        let mut round = Round {
            scenario,
            fault,
            shape,
            name: name.clone(),
            is_sturdy,
            promised: Vec::new(),
            asked,
            token,
        };
        // Where a random fault strikes: while it is submitted, or at the verb after that.
        let is_late =
            matches!(scenario, Scenario::Abort | Scenario::Resubmit) && self.random.next(2) == 0;
        let submitted = self.act(
            &[&["submit", "-f", file, "--name", &name], shape.words()].concat(),
            (!is_late).then_some(fault),
        );
        if submitted.code == 0 {
            round.promised.extend(shape.runs(&submitted.id()));
            if matches!(scenario, Scenario::Abort | Scenario::Resubmit) {
                self.verb_after(&mut round, &submitted.id(), is_late);
            }
        }
        self.disarm(&round);
        self.rounds.push(round);
    }

    /// The abort, or the resubmission, of a run that has started, or is on its way.
    fn verb_after(&mut self, round: &mut Round, id: &str, is_late: bool) {
        if self.random.next(3) > 0 {
            let over = || round.token.as_ref().is_some_and(|token| !token.exists());
            let first = &round.shape.runs(id)[0];
            until("the long run to start or a kill", || {
                (self.lab.has_started(first) || self.shot.contains(first) || over()).then_some(())
            });
        }
        let words: &[&str] = match (round.scenario, round.shape) {
            (Scenario::Abort, _) => &["abort"],
            (_, Shape::Sweep) => &["resubmit", "--all"],
            _ => &["resubmit"],
        };
        let done = self.act(&[words, &[id]].concat(), is_late.then_some(round.fault));
        if words[0] == "resubmit" {
            round.asked *= 2;
            if done.code == 0 {
                round.promised.extend(round.shape.runs(&done.id()));
            }
        }
    }

    /// A verb, with a fault at a random moment of it.
    fn act(&mut self, words: &[&str], fault: Option<Fault>) -> Output {
        let mut child = self.lab.home.spawn(words);
        if let Some(fault) = fault.filter(|fault| fault.point().is_none()) {
            let daemon = self.lab.home.daemon();
            let span = if words[0] == "submit" { 1500 } else { 500 };
            std::thread::sleep(Duration::from_millis(self.random.next(span) as u64));
            self.strike(fault, &mut child, daemon);
        }
        let output = Output::from(child.wait_with_output().unwrap());
        // Done, killed, or out of reach: nothing else can come of it.
        assert!(
            [0, 125, 137].contains(&output.code),
            "{words:?} with {fault:?}: {output:?}"
        );
        output
    }

    fn strike(&mut self, fault: Fault, child: &mut Child, daemon: Option<i32>) {
        match fault {
            Fault::DropConnections => self.lab.slurm.drop_connections(),
            Fault::KillClient => {
                if child.try_wait().unwrap().is_some() {
                    return;
                }
                child.kill().unwrap();
            }
            Fault::KillDaemon => {
                let Some(pid) = daemon else { return };
                process::signal(pid, rustix::process::Signal::KILL);
            }
            Fault::KillSite => {
                let sites = self.lab.over_there("login", "__site");
                if sites.is_empty() {
                    return;
                }
                for (pid, _) in sites {
                    self.lab.shoot("login", &pid);
                }
            }
            Fault::KillRunner => {
                let verb = self.random.pick(&["__head", "__node"]);
                let all: Vec<(&str, String, String)> = ["c1", "c2", "c3"]
                    .into_iter()
                    .flat_map(|host| {
                        self.lab
                            .over_there(host, verb)
                            .into_iter()
                            .map(move |(pid, words)| (host, pid, words))
                    })
                    .collect();
                if all.is_empty() {
                    return;
                }
                let (host, pid, words) = &all[self.random.next(all.len())];
                // The head of an array's task names the whole of it.
                let named = words
                    .split(' ')
                    .skip_while(|word| word != &verb)
                    .nth(if verb == "__head" { 2 } else { 3 })
                    .unwrap();
                self.shot.extend(
                    Shape::Sweep
                        .runs(named)
                        .into_iter()
                        .chain([named.to_owned()]),
                );
                self.lab.shoot(host, pid);
            }
            Fault::Here(_) | Fault::There(_) => return,
        }
        self.kills += 1;
    }

    /// Waits for the kill, or until it cannot come any more. Heads have their order with them.
    fn disarm(&mut self, round: &Round) {
        let Some(token) = &round.token else { return };
        if !round.fault.is_head() {
            let what = format!(
                "{:?} {:?}: the kill, or the end",
                round.scenario, round.fault
            );
            until(&what, || {
                let open = self
                    .lab
                    .home
                    .tow(["ps", "--state", "active", "--json"])
                    .json();
                let quiet = open["runs"]
                    .as_array()
                    .is_some_and(|runs| runs.iter().all(|run| !round.is_mine(run)));
                (!token.exists() || quiet).then_some(())
            });
        }
        for name in [
            "TOW_CRASH_AT",
            "TOW_CRASH_ONCE",
            "TOW_FAR_CRASH_AT",
            "TOW_FAR_CRASH_ONCE",
        ] {
            self.lab.home.unset(name);
        }
    }

    /// Things go on, and everything that was promised comes to its true end.
    fn settle(&mut self) {
        let of = |run: &Value| {
            self.rounds[self.checked..]
                .iter()
                .find(|round| round.is_mine(run))
        };
        // What a killed client had sent may still be on its way in; long runs that nobody ended are
        // ended by the user now.
        until("all long runs to be asked to end", || {
            let open = self
                .lab
                .home
                .tow(["ps", "--state", "active", "--all", "--json"])
                .ok()
                .json();
            let mut all = true;
            for run in open["runs"].as_array().unwrap() {
                if of(run).is_some_and(|round| {
                    matches!(round.scenario, Scenario::Abort | Scenario::Resubmit)
                }) {
                    all &= self
                        .lab
                        .home
                        .tow(["abort", run["id"].as_str().unwrap()])
                        .code
                        == 0;
                }
            }
            all.then_some(())
        });
        self.lab.wait_for_all("the campaign");
        let runs = self.lab.runs();
        let what = format!("rounds {}..{}", self.checked, self.rounds.len());
        self.lab.nothing_was_doubled(&what);
        self.lab.nothing_is_left(&what);
        self.nothing_was_handed_over_twice(&runs);
        for round in &self.rounds[self.checked..] {
            self.check(round, &runs);
            if round.token.as_ref().is_some_and(|token| !token.exists()) {
                self.kills += 1;
                self.passed.extend(round.fault.point());
            }
        }
        self.checked = self.rounds.len();
    }

    /// Whoever comes after a lost answer finds the job that was taken. A second one would see the
    /// claim and leave, so that no ledger tells of it.
    fn nothing_was_handed_over_twice(&self, runs: &[Value]) {
        let is_calm = |round: &&Round| !round.fault.is_head() && round.scenario != Scenario::Limit;
        let rounds: Vec<&Round> = self.rounds[self.checked..].iter().filter(is_calm).collect();
        let mut submissions: BTreeSet<&str> = BTreeSet::new();
        for run in runs
            .iter()
            .filter(|run| rounds.iter().any(|round| round.is_mine(run)))
        {
            let id = run["id"].as_str().unwrap();
            if self.lab.has_started(id) && !self.shot.contains(id) {
                submissions.insert(run["sweep"].as_str().unwrap_or(id));
            }
        }
        assert!(
            !submissions.is_empty(),
            "nothing of these rounds has started"
        );
        // The database hears of a job a little later.
        let taken = until("all jobs to be in the database", || {
            let taken = self.lab.jobs_taken();
            submissions
                .iter()
                .all(|id| taken.contains_key(*id))
                .then_some(taken)
        });
        let twice: Vec<_> = taken
            .iter()
            .filter(|(id, jobs)| submissions.contains(id.as_str()) && jobs.len() > 1)
            .collect();
        assert!(twice.is_empty(), "handed over more than once: {twice:?}");
    }

    fn check(&self, round: &Round, runs: &[Value]) {
        let what = format!("{round:?}");
        let mine: Vec<&Value> = runs.iter().filter(|run| round.is_mine(run)).collect();
        for id in &round.promised {
            assert!(
                mine.iter().any(|run| run["id"] == id.as_str()),
                "{what}: {id} was lost"
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
    }

    fn check_run(&self, what: &str, round: &Round, run: &Value) {
        let id = run["id"].as_str().unwrap();
        let (state, reason) = (
            run["state"].as_str().unwrap(),
            run["reason"].as_str().unwrap_or_default(),
        );
        let attempt = u32::try_from(run["attempt"].as_u64().unwrap()).unwrap();
        let (starts, ends) = (self.lab.attempts("start", id), self.lab.attempts("end", id));
        let shown = || format!("{what}: {run}\nstarted {starts:?}, ended {ends:?}");
        assert!(
            starts.iter().all(|started| *started <= attempt),
            "{}",
            shown()
        );
        let is_long = matches!(round.scenario, Scenario::Abort | Scenario::Resubmit);
        let is_hit = round.fault.is_head() || self.shot.contains(id);
        match state {
            "succeeded" => assert!(!is_long && ends.last() == Some(&attempt), "{}", shown()),
            "cancelled" => assert!(is_long, "{}", shown()),
            // Only a killed head may fail a run, and only one that is not to be tried again.
            "failed" => assert!(
                is_hit && !round.is_sturdy && reason == "node_failed",
                "{}",
                shown()
            ),
            _ => panic!("{}", shown()),
        }
        if !is_hit && !is_long {
            let expected = match round.scenario {
                Scenario::Submit => 1,
                Scenario::Retry => 3,
                _ => attempt,
            };
            assert_eq!(
                (attempt, &starts),
                (expected, &(1..=expected).collect::<Vec<_>>()),
                "{}",
                shown()
            );
        }
    }
}

#[test]
fn no_job_is_lost_and_none_doubled() {
    let mut campaign = Campaign::new(seed());
    let begun = Instant::now();
    let times = if is_soak() { 8 } else { 1 };
    for _ in 0..times {
        let mut cases = points();
        cases.extend(AT_RANDOM.repeat(if is_soak() { 3 } else { 1 }));
        // Those that take longest are under way while the others go through.
        cases.sort_by_key(|fault| {
            (
                !fault
                    .point()
                    .is_some_and(|point| point.starts_with("head.requeue")),
                !fault.is_head(),
            )
        });
        for fault in cases {
            let scenario = campaign.random.pick(scenarios(fault));
            campaign.round(scenario, fault);
        }
        campaign.settle();
    }
    let missed: Vec<_> = points()
        .into_iter()
        .filter_map(Fault::point)
        .filter(|point| !campaign.passed.contains(point))
        .collect();
    let (rounds, kills, runs) = (
        campaign.rounds.len(),
        campaign.kills,
        campaign.lab.runs().len(),
    );
    println!(
        "exactly once on Slurm: {rounds} rounds, {kills} faults, {runs} runs in {} s, none lost, \
            none doubled",
        begun.elapsed().as_secs()
    );
    assert!(missed.is_empty(), "nobody was killed at {missed:?}");
    let promised = campaign
        .rounds
        .iter()
        .filter(|round| !round.promised.is_empty())
        .count();
    assert!(
        promised * 2 > rounds,
        "only {promised} of {rounds} rounds were promised anything"
    );
    assert!(
        kills as usize > points().len(),
        "of the faults at random moments none struck"
    );
    assert!(!is_soak() || kills >= 300, "only {kills} faults happened");
}
