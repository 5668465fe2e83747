//! Rounds that overlap, each with its fault; then all is let go on, and what came of it is held
//! against the ledger and the service (`check.rs`).

use crate::faults::{ALL, AT_RANDOM, Fault, Scenario, blobs, points, scenarios, troubles};
use crate::lab::{FLAVOURS, Lab};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use towline_host::process;
use towline_testkit::aml::Trouble;
use towline_testkit::campaign::{Seeded, Shape, is_soak, seed};
use towline_testkit::{Output, until};

/// Rounds between two looks at everything.
const TOGETHER: usize = 12;

/// What was asked for in one round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) flavour: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) fault: Fault,
    pub(crate) shape: Shape,
    /// The name of its runs.
    pub(crate) name: String,
    /// Runs whose submission was acknowledged, and how often one was asked for.
    pub(crate) promised: Vec<String>,
    pub(crate) asked: usize,
    /// Runs that another machine has taken too.
    pub(crate) adopted: Vec<String>,
    /// Gone when somebody was killed at the point.
    pub(crate) token: Option<PathBuf>,
}

pub(crate) struct Campaign {
    pub(crate) lab: Lab,
    random: Seeded,
    pub(crate) rounds: Vec<Round>,
    pub(crate) checked: usize,
    pub(crate) faults: usize,
    /// Troubles of calls that have not happened.
    pub(crate) left: usize,
    pub(crate) passed: BTreeSet<&'static str>,
    /// Runs of which a guard or a runner was shot.
    pub(crate) shot: BTreeSet<String>,
}

impl Campaign {
    fn new(seed: u64) -> Self {
        let lab = Lab::new();
        // Nobody here has ten seconds for a question about a cancellation.
        lab.aml.conditions(|conditions| {
            (conditions.poll_after, conditions.grace) = (Some(1), Duration::from_secs(3));
        });
        let trusted = lab.aml.authority().display().to_string();
        lab.aml.conditions(|conditions| {
            conditions
                .variables
                .push((String::new(), ["SSL_CERT_FILE".to_owned(), trusted]));
        });
        Self {
            lab,
            random: Seeded(seed),
            rounds: Vec::new(),
            checked: 0,
            faults: 0,
            left: 0,
            passed: BTreeSet::new(),
            shot: BTreeSet::new(),
        }
    }

    /// The calls that a submission, an abort and a resubmission make when nothing is wrong.
    fn calls(&self) -> BTreeSet<(String, String)> {
        for flavour in FLAVOURS {
            let lab = &self.lab;
            let id = lab
                .home
                .tow(["-c", flavour, "submit", "-f", "long.yaml"])
                .ok()
                .id();
            until("the run to start", || lab.has_started(&id).then_some(()));
            let again = lab.home.tow(["resubmit", &id]).ok().id();
            until("the other to start", || {
                lab.has_started(&again).then_some(())
            });
            lab.home.tow(["abort", "--wait", &again]).ok();
        }
        let id = self.lab.home.tow(["submit", "-f", "secret.yaml"]).ok().id();
        self.lab.home.tow(["wait", &id]).ok();
        let workspace = format!("/workspaces/{}", self.lab.aml.scope().workspace);
        let part = |target: &str| {
            let path = target.split('?').next().unwrap_or_default();
            let below = path.split_once(&workspace).map_or(path, |(_, below)| below);
            match below.strip_prefix("/jobs/") {
                Some(rest) if rest.ends_with("/cancel") => "/cancel".to_owned(),
                Some(_) => "/jobs/".to_owned(),
                None if below.is_empty() => format!("{workspace}?"),
                None if path.starts_with("/history/") => "/history/".to_owned(),
                None if path.starts_with("/secrets/") => "/secrets/".to_owned(),
                None => below.to_owned(),
            }
        };
        self.lab
            .aml
            .recorded()
            .iter()
            .map(|pair| (pair.method.clone(), part(&pair.target)))
            .collect()
    }

    /// What is to die at a point has its own token, so that rounds overlap.
    fn arm(&mut self, fault: &Fault, flavour: &str) -> Option<PathBuf> {
        match fault {
            Fault::Call {
                method,
                part,
                trouble,
                when,
            } => {
                Lab::stop_daemon(&self.lab.home);
                self.lab.forget_facts(flavour);
                self.lab.aml.trouble(1, method, part, *trouble, *when);
                // A conflict with something that is not seen yet is the worst of them.
                if matches!(
                    trouble,
                    Trouble::Status {
                        status: 409 | 412,
                        ..
                    }
                ) {
                    self.lab
                        .aml
                        .conditions(|conditions| conditions.unseen = Duration::from_millis(1500));
                }
            }
            Fault::Blob { method, part, what } => {
                if *method == "PUT" && part.starts_with("/bin/") {
                    Lab::stop_daemon(&self.lab.home);
                    self.lab.use_new_program(self.rounds.len());
                }
                self.lab.aml.azurite().trouble(method, part, what);
            }
            Fault::Unseen => self
                .lab
                .aml
                .conditions(|conditions| conditions.unseen = Duration::from_millis(1500)),
            Fault::Expired => self
                .lab
                .aml
                .conditions(|conditions| conditions.token_lifetime = 2),
            Fault::Here(_)
            | Fault::There(_)
            | Fault::KillClient
            | Fault::KillDaemon
            | Fault::KillCrew => {}
        }
        let point = fault.point()?;
        let token = self.lab.home.path(&format!("token-{}", self.rounds.len()));
        std::fs::write(&token, "").unwrap();
        let pairs = [
            ("TOW_CRASH_AT", point.to_owned()),
            ("TOW_CRASH_ONCE", token.display().to_string()),
        ];
        if fault.is_there() {
            let begin = format!("r{}-", self.rounds.len());
            self.lab.aml.conditions(|conditions| {
                conditions
                    .variables
                    .extend(pairs.map(|(name, value)| (begin.clone(), [name.to_owned(), value])));
            });
        } else {
            // A daemon that is told where to die.
            Lab::stop_daemon(&self.lab.home);
            for (name, value) in pairs {
                self.lab.home.set(name, &value);
            }
        }
        if point.starts_with("azureml.program") {
            self.lab.use_new_program(self.rounds.len());
        }
        Some(token)
    }

    fn round(&mut self, flavour: &'static str, scenario: Scenario, fault: Fault) {
        // Code that nobody has seen, so that it is brought.
        self.lab.home.write("salt", &self.rounds.len().to_string());
        let token = self.arm(&fault, flavour);
        let name = format!("r{}", self.rounds.len());
        let shape = self
            .random
            .pick(&[Shape::One, Shape::One, Shape::Sweep, Shape::Gang]);
        let asked = shape.runs("").len();
        let mut round = Round {
            flavour,
            scenario,
            fault,
            shape,
            name: name.clone(),
            promised: Vec::new(),
            asked,
            adopted: Vec::new(),
            token,
        };
        // Where a random fault strikes: while it is submitted, or at the verb after that.
        let is_late = !matches!(
            scenario,
            Scenario::Submit | Scenario::Secret | Scenario::Retry
        ) && self.random.next(2) == 0;
        if is_late && matches!(round.fault, Fault::Unseen) {
            self.lab
                .aml
                .conditions(|conditions| conditions.unseen = Duration::from_secs(3));
        }
        let words = [
            &[
                "-c",
                flavour,
                "submit",
                "-f",
                scenario.file(),
                "--name",
                &name,
            ],
            shape.words(),
        ]
        .concat();
        let submitted = self.act(false, &words, (!is_late).then_some(&round.fault));
        if submitted.code == 0 {
            round.promised.extend(shape.runs(&submitted.id()));
            self.verb_after(&mut round, &submitted.id(), is_late);
        }
        self.disarm(&round);
        self.rounds.push(round);
    }

    /// What follows the submission, of a run that has started or is on its way.
    fn verb_after(&mut self, round: &mut Round, id: &str, is_late: bool) {
        let first = round.shape.runs(id)[0].clone();
        if round.scenario == Scenario::Preempt
            || round.scenario.is_long() && self.random.next(3) > 0
        {
            let over = || {
                round.token.as_ref().is_some_and(|token| !token.exists())
                    || self.shot.contains(&first)
            };
            until("the run to start or a kill", || {
                (self.lab.has_started(&first) || over()).then_some(())
            });
        }
        let late = round.fault.clone();
        let fault = is_late.then_some(&late);
        match round.scenario {
            Scenario::Submit | Scenario::Secret | Scenario::Retry => {}
            Scenario::Abort => drop(self.act(false, &["abort", id], fault)),
            Scenario::Resubmit => {
                let words: &[&str] = if round.shape == Shape::Sweep {
                    &["resubmit", "--all", id]
                } else {
                    &["resubmit", id]
                };
                let done = self.act(false, words, fault);
                round.asked *= 2;
                if done.code == 0 {
                    round.promised.extend(round.shape.runs(&done.id()));
                }
            }
            Scenario::Preempt => {
                round
                    .shape
                    .runs(id)
                    .iter()
                    .for_each(|run| self.lab.aml.preempt(run));
                self.act(false, &["ps"], fault);
            }
            Scenario::Adopt => {
                let done = self.act(true, &["-c", round.flavour, "adopt", id], fault);
                if done.code == 0 {
                    round.adopted = round.shape.runs(id);
                }
            }
        }
    }

    /// A verb of this machine, or of the other, with a fault at a random moment of it.
    fn act(&mut self, is_other: bool, words: &[&str], fault: Option<&Fault>) -> Output {
        let home = if is_other {
            &self.lab.other
        } else {
            &self.lab.home
        };
        let mut child = home.spawn(words);
        if let Some(fault) = fault {
            let daemon = if *fault == Fault::KillDaemon {
                home.daemon()
            } else {
                None
            };
            let span = if words.contains(&"submit") { 900 } else { 400 };
            if AT_RANDOM.contains(fault) {
                std::thread::sleep(Duration::from_millis(self.random.next(span) as u64));
            }
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

    fn strike(&mut self, fault: &Fault, child: &mut Child, daemon: Option<i32>) {
        match fault {
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
            Fault::KillCrew => {
                let all = self.lab.crew();
                if all.is_empty() {
                    return;
                }
                let (run, pid) = all[self.random.next(all.len())].clone();
                process::signal(pid, rustix::process::Signal::KILL);
                self.shot.insert(run);
            }
            _ => return,
        }
        self.faults += 1;
    }

    /// Waits for the fault, or until it cannot come any more. Runners have their order with them.
    fn disarm(&mut self, round: &Round) {
        if let (Some(token), Fault::Here(_)) = (&round.token, &round.fault) {
            let what = format!("{round:?}: the kill, or the end");
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
        for name in ["TOW_CRASH_AT", "TOW_CRASH_ONCE"] {
            self.lab.home.unset(name);
        }
        if matches!(round.fault, Fault::Blob { .. }) {
            self.faults += usize::from(!self.lab.aml.azurite().heal());
        }
        if matches!(round.fault, Fault::Unseen | Fault::Expired) {
            self.faults += 1;
        }
        self.lab.aml.conditions(|conditions| {
            (conditions.unseen, conditions.token_lifetime) = (Duration::ZERO, 3600);
        });
    }
}

/// Every fault, each with a scenario that meets it and a flavour in turn.
fn cases(
    calls: &BTreeSet<(String, String)>,
    random: &mut Seeded,
) -> Vec<(&'static str, Scenario, Fault)> {
    let mut faults: Vec<Fault> = calls
        .iter()
        .flat_map(|(method, part)| troubles(method, part))
        .collect();
    faults.extend(blobs());
    for _ in 0..FLAVOURS.len() {
        faults.extend(points());
    }
    for _ in 0..30 {
        faults.extend(AT_RANDOM);
    }
    for _ in 0..ALL.len() * 2 {
        faults.extend([Fault::Unseen, Fault::Expired]);
    }
    let mut cases: Vec<_> = faults
        .into_iter()
        .enumerate()
        .map(|(at, fault)| {
            (
                FLAVOURS[at % FLAVOURS.len()],
                random.pick(scenarios(&fault)),
                fault,
            )
        })
        .collect();
    random.shuffle(&mut cases);
    cases
}

#[test]
fn no_job_is_lost_and_none_doubled() {
    let seed = seed();
    println!("seed {seed}");
    let mut campaign = Campaign::new(seed);
    let begun = Instant::now();
    let calls = campaign.calls();
    let mut cases = cases(&calls, &mut campaign.random);
    let all = cases.len();
    if !is_soak() {
        cases.truncate(all / 10);
    }
    for some in cases.chunks(TOGETHER) {
        for (flavour, scenario, fault) in some {
            println!(
                "{:?} round {}: {flavour} {scenario:?} {fault:?}",
                begun.elapsed(),
                campaign.rounds.len()
            );
            campaign.round(flavour, *scenario, fault.clone());
        }
        campaign.settle();
    }
    let missed: Vec<_> = points()
        .iter()
        .filter_map(Fault::point)
        .filter(|point| !campaign.passed.contains(point))
        .collect();
    let (rounds, faults, runs) = (
        campaign.rounds.len(),
        campaign.faults,
        campaign.lab.runs().len(),
    );
    println!(
        "exactly once on Azure ML: {rounds} of {all} rounds, {faults} kills, cuts and lost answers \
            of {} calls, {runs} runs in {} s, none lost, none doubled",
        calls.len(),
        begun.elapsed().as_secs()
    );
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
        faults * 2 > rounds,
        "of {rounds} faults only {faults} struck"
    );
    assert!(
        !is_soak() || missed.is_empty(),
        "nobody was killed at {missed:?}"
    );
    assert!(!is_soak() || faults >= 300, "only {faults} faults happened");
}
