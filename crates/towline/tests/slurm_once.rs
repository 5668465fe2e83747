//! Exactly once on a real Slurm cluster: connections are cut, and client, daemon, site and heads
//! killed, at every named point of submit, abort, resubmit and retry and at random moments; then
//! things go on. No job is lost, no attempt starts twice, no two attempts of a run live at once,
//! and nothing is left in the queue or on a node.
//!
//! A seeded tenth runs here; `TOW_SOAK=1` runs all.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use towline_host::crash::{FAR_POINTS, POINTS};
use towline_host::process;
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, Output, until};

/// Keeps a ledger in the home that all hosts share: every start and end, and whether another
/// attempt was alive. The lock goes with the process that is the job, whatever kills it. Each rank
/// has its lock, the first alone writes its starts and ends.
const JOB: &str = r#"#!/bin/sh
exec 9>"$HOME/ledger.$TOW_RUN_ID.$RANK.lock"
flock -n 9 || echo "double $TOW_RUN_ID $TOW_ATTEMPT $(hostname)" >> "$HOME/ledger"
ledger="$HOME/ledger"
[ "$RANK" = 0 ] || ledger=/dev/null
echo "start $TOW_RUN_ID $TOW_ATTEMPT $(hostname)" >> "$ledger"
case "$1" in
  quick) sleep 0.2 ;;
  some) i=0; while [ $i -lt "$2" ]; do echo "line $i"; i=$((i + 1)); sleep 0.1; done ;;
  long) exec sleep 300 ;;
  third) [ "$TOW_ATTEMPT" -ge 3 ] || exit 1 ;;
  once) [ "$TOW_ATTEMPT" -ge 2 ] || exec sleep 300 ;;
esac
echo "end $TOW_RUN_ID $TOW_ATTEMPT $(hostname)" >> "$ledger"
"#;

/// The job files: what runs, and what follows an attempt that fails.
const JOBS: [(&str, &str); 8] = [
    ("quick.yaml", "command: [sh, job.sh, quick]\n"),
    ("sturdy.yaml", "command: [sh, job.sh, quick]\nretry: {when: [node_failed], max: 9}\n"),
    ("third.yaml", "command: [sh, job.sh, third]\nretry: {when: [exit_code, node_failed], max: 9}\n"),
    ("later.yaml", "command: [sh, job.sh, quick]\nresources: {native: [--begin=now+6]}\n"),
    ("long.yaml", "command: [sh, job.sh, long]\n"),
    ("some.yaml", "command: [sh, job.sh, some, 50]\nretry: {when: [node_failed], max: 9}\n"),
    ("once.yaml", "command: [sh, job.sh, once]\nretry: {when: [node_failed], max: 9}\n"),
    ("limit.yaml", "command: [sh, job.sh, once]\nresources: {time: 1m}\nretry: {when: [time_limit, node_failed], max: 9}\n"),
];

/// A small generator, so that a seed gives the same campaign everywhere.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % below as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len())]
    }
}

/// A user here, and a cluster of their own.
struct Lab {
    home: Home,
    slurm: Slurm,
}

impl Lab {
    fn new(options: &Options) -> Self {
        let slurm = Slurm::start(options);
        let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
        home.configure(&format!("default_cluster: lab\nclusters:\n  lab: {{kind: slurm, host: login, ssh_config: {}}}\n", slurm.ssh_config().display()));
        home.write("job.sh", JOB);
        for (name, text) in JOBS {
            home.write(name, text);
        }
        Self { home, slurm }
    }

    fn ledger(&self) -> String {
        fs::read_to_string(self.slurm.home("alice").join("ledger")).unwrap_or_default()
    }

    /// The attempts of a run that wrote this word, each time they did.
    fn attempts(&self, word: &str, run: &str) -> Vec<u32> {
        let begin = format!("{word} {run} ");
        let attempt = |line: &str| line.strip_prefix(&begin)?.split(' ').next()?.parse().ok();
        self.ledger().lines().filter_map(attempt).collect()
    }

    fn has_started(&self, run: &str) -> bool {
        !self.attempts("start", run).is_empty()
    }

    #[track_caller]
    fn until_started(&self, run: &str) {
        until(&format!("{run} to start"), || self.has_started(run).then_some(()));
    }

    #[track_caller]
    fn submit(&self, words: &[&str]) -> String {
        self.home.tow([&["submit"], words].concat()).ok().id()
    }

    fn runs(&self) -> Vec<Value> {
        self.home.tow(["ps", "--all", "--json"]).ok().json()["runs"].as_array().unwrap().clone()
    }

    /// Waits for all runs, through whatever it takes a lease to lapse.
    #[track_caller]
    fn wait_for_all(&self, what: &str) {
        let begun = Instant::now();
        while self.home.tow(["wait", "--timeout", "20s"]).code == 124 {
            assert!(begun.elapsed() < Duration::from_secs(150), "{what}: not all came to an end\n{}", self.home.tow(["ps"]).stdout);
        }
    }

    /// What the scheduler has of the user and has not ended.
    fn queued(&self) -> String {
        self.slurm.exec("login", "alice", ["squeue", "-h", "-u", "alice", "-t", "PD,CF,R,CG,S", "-o", "%i %j %T %r"]).stdout
    }

    #[track_caller]
    fn nothing_is_left(&self, what: &str) {
        until(&format!("{what}: an empty queue, not\n{}", self.queued()), || self.queued().is_empty().then_some(()));
        for host in ["c1", "c2", "c3"] {
            let told = "for p in $(pgrep -u alice); do ps -o pid=,ppid=,lstart=,args= $p; tr '\\0' '\\n' < /proc/$p/environ | grep -E '^TOW_(RUN_ID|ATTEMPT)|^SLURM_JOB_ID|^RANK='; done";
            let alive = self.slurm.root(host, ["sh", "-c", told]).stdout;
            assert!(alive.is_empty(), "{what}: left alive on {host}: {alive}\n{}", self.ledger());
        }
    }

    /// No attempt started twice, none while another was alive.
    #[track_caller]
    fn nothing_was_doubled(&self, what: &str) {
        let mut starts: BTreeMap<(String, String), u32> = BTreeMap::new();
        for line in self.ledger().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_ne!(words[0], "double", "{what}: two attempts alive at once: {line}\n{}", self.ledger());
            if words[0] == "start" {
                *starts.entry((words[1].to_owned(), words[2].to_owned())).or_default() += 1;
            }
        }
        let twice: Vec<_> = starts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "{what}: started more than once: {twice:?}");
    }

    /// The run started once, by its first attempt, and ended well.
    #[track_caller]
    fn ran_exactly_once(&self, run: &str) {
        let shown = self.home.show(run);
        assert_eq!((shown["state"].as_str(), shown["attempt"].as_u64()), (Some("succeeded"), Some(1)), "{shown}");
        assert_eq!((self.attempts("start", run), self.attempts("end", run)), (vec![1], vec![1]), "{}", self.ledger());
    }

    /// Processes of ours on a host: their ids there, and their words.
    fn over_there(&self, host: &str, verb: &str) -> Vec<(String, String)> {
        let found = self.slurm.root(host, ["pgrep", "-u", "alice", "-a", "-f", &format!("/tow-[0-9a-f]* {verb} ")]).stdout;
        found.lines().filter_map(|line| line.split_once(' ')).map(|(pid, words)| (pid.to_owned(), words.to_owned())).collect()
    }

    fn shoot(&self, host: &str, pid: &str) {
        self.slurm.root(host, ["kill", "-KILL", pid]);
    }

    fn stop_daemon(&self) {
        self.home.tow(["daemon", "stop"]);
        let lock = self.home.state().daemon_lock();
        until("the daemon to leave", || (!towline_host::lock::is_held(&lock).unwrap_or(false)).then_some(()));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Submit,
    Abort,
    Resubmit,
    Retry,
    /// An attempt whose time is up, and the next.
    Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    /// Three runs, which are one array over there.
    Sweep,
    /// Two nodes.
    Gang,
}

impl Shape {
    const fn words(self) -> &'static [&'static str] {
        match self {
            Self::One => &[],
            Self::Sweep => &["--sweep", "seed=1-3"],
            Self::Gang => &["--nodes", "2"],
        }
    }

    /// The runs of a submission.
    fn runs(self, id: &str) -> Vec<String> {
        if self == Self::Sweep { (1..=3).map(|number| format!("{id}-{number}")).collect() } else { vec![id.to_owned()] }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Client or daemon, at a named point.
    Here(&'static str),
    /// Site or head, at a named point.
    There(&'static str),
    DropConnections,
    KillClient,
    KillDaemon,
    /// All that serve connections beside the scheduler.
    KillSite,
    /// A head or a runner of a node, whoever's it is.
    KillRunner,
}

const AT_RANDOM: [Fault; 5] = [Fault::DropConnections, Fault::KillClient, Fault::KillDaemon, Fault::KillSite, Fault::KillRunner];

impl Fault {
    fn point(self) -> Option<&'static str> {
        match self {
            Self::Here(point) | Self::There(point) => Some(point),
            _ => None,
        }
    }
    fn is_head(self) -> bool {
        self.point().is_some_and(|point| point.starts_with("head."))
    }
}

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
        run["id"].as_str().and_then(|id| id.strip_prefix(&self.name)).is_some_and(|rest| rest.starts_with('-'))
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
        let lab = Lab::new(&Options { gpus: 0, ..Options::default() });
        Self { lab, random: Seeded(seed), rounds: Vec::new(), checked: 0, kills: 0, passed: BTreeSet::new(), shot: BTreeSet::new() }
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
        let is_sturdy = matches!(scenario, Scenario::Retry | Scenario::Limit) || scenario == Scenario::Submit && self.random.next(2) == 0;
        let file = match scenario {
            Scenario::Submit if is_sturdy => "sturdy.yaml",
            Scenario::Submit => "quick.yaml",
            Scenario::Abort | Scenario::Resubmit => "long.yaml",
            Scenario::Retry => "third.yaml",
            Scenario::Limit => "limit.yaml",
        };
        let name = format!("r{}", self.rounds.len());
        let shape = if scenario == Scenario::Limit { Shape::One } else { self.random.pick(&[Shape::One, Shape::One, Shape::Sweep, Shape::Gang]) };
        let asked = shape.runs("").len();
        let mut round = Round { scenario, fault, shape, name: name.clone(), is_sturdy, promised: Vec::new(), asked, token };
        // Where a random fault strikes: while it is submitted, or at the verb after that.
        let is_late = matches!(scenario, Scenario::Abort | Scenario::Resubmit) && self.random.next(2) == 0;
        let submitted = self.act(&[&["submit", "-f", file, "--name", &name], shape.words()].concat(), (!is_late).then_some(fault));
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
            until("the long run to start or a kill", || (self.lab.has_started(first) || self.shot.contains(first) || over()).then_some(()));
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
        assert!([0, 125, 137].contains(&output.code), "{words:?} with {fault:?}: {output:?}");
        output
    }

    fn strike(&mut self, fault: Fault, child: &mut Child, daemon: Option<i32>) {
        match fault {
            Fault::DropConnections => self.lab.slurm.drop_connections(),
            Fault::KillClient => drop(child.kill()),
            Fault::KillDaemon => {
                let Some(pid) = daemon else { return };
                process::signal(pid, rustix::process::Signal::KILL);
            }
            Fault::KillSite => {
                let sites = self.lab.over_there("login", "__site");
                sites.iter().for_each(|(pid, _)| self.lab.shoot("login", pid));
            }
            Fault::KillRunner => {
                let verb = self.random.pick(&["__head", "__node"]);
                let all: Vec<(&str, String, String)> = ["c1", "c2", "c3"]
                    .into_iter()
                    .flat_map(|host| self.lab.over_there(host, verb).into_iter().map(move |(pid, words)| (host, pid, words)))
                    .collect();
                if all.is_empty() {
                    return;
                }
                let (host, pid, words) = &all[self.random.next(all.len())];
                // The head of an array's task names the whole of it.
                let named = words.split(' ').skip_while(|word| word != &verb).nth(if verb == "__head" { 2 } else { 3 }).unwrap();
                self.shot.extend(Shape::Sweep.runs(named).into_iter().chain([named.to_owned()]));
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
            let what = format!("{:?} {:?}: the kill, or the end", round.scenario, round.fault);
            until(&what, || {
                let open = self.lab.home.tow(["ps", "--state", "active", "--json"]).json();
                let quiet = open["runs"].as_array().is_some_and(|runs| runs.iter().all(|run| !round.is_mine(run)));
                (!token.exists() || quiet).then_some(())
            });
        }
        for name in ["TOW_CRASH_AT", "TOW_CRASH_ONCE", "TOW_FAR_CRASH_AT", "TOW_FAR_CRASH_ONCE"] {
            self.lab.home.unset(name);
        }
    }

    /// Things go on, and everything that was promised comes to its true end.
    fn settle(&mut self) {
        let of = |run: &Value| self.rounds[self.checked..].iter().find(|round| round.is_mine(run));
        // What a killed client had sent may still be on its way in; long runs that nobody ended are ended by the user now.
        until("all long runs to be asked to end", || {
            let open = self.lab.home.tow(["ps", "--state", "active", "--all", "--json"]).ok().json();
            let mut all = true;
            for run in open["runs"].as_array().unwrap() {
                if of(run).is_some_and(|round| matches!(round.scenario, Scenario::Abort | Scenario::Resubmit)) {
                    all &= self.lab.home.tow(["abort", run["id"].as_str().unwrap()]).code == 0;
                }
            }
            all.then_some(())
        });
        self.lab.wait_for_all("the campaign");
        let runs = self.lab.runs();
        let what = format!("rounds {}..{}", self.checked, self.rounds.len());
        self.lab.nothing_was_doubled(&what);
        self.lab.nothing_is_left(&what);
        for round in &self.rounds[self.checked..] {
            self.check(round, &runs);
            if round.token.as_ref().is_some_and(|token| !token.exists()) {
                self.kills += 1;
                self.passed.extend(round.fault.point());
            }
        }
        self.checked = self.rounds.len();
    }

    fn check(&self, round: &Round, runs: &[Value]) {
        let what = format!("{round:?}");
        let mine: Vec<&Value> = runs.iter().filter(|run| round.is_mine(run)).collect();
        for id in &round.promised {
            assert!(mine.iter().any(|run| run["id"] == id.as_str()), "{what}: {id} was lost");
        }
        assert!(mine.len() <= round.asked, "{what}: {} runs made, {} asked for", mine.len(), round.asked);
        for run in mine {
            self.check_run(&what, round, run);
        }
    }

    fn check_run(&self, what: &str, round: &Round, run: &Value) {
        let id = run["id"].as_str().unwrap();
        let (state, reason) = (run["state"].as_str().unwrap(), run["reason"].as_str().unwrap_or_default());
        let attempt = u32::try_from(run["attempt"].as_u64().unwrap()).unwrap();
        let (starts, ends) = (self.lab.attempts("start", id), self.lab.attempts("end", id));
        let shown = || format!("{what}: {run}\nstarted {starts:?}, ended {ends:?}");
        assert!(starts.iter().all(|started| *started <= attempt), "{}", shown());
        let is_long = matches!(round.scenario, Scenario::Abort | Scenario::Resubmit);
        let is_hit = round.fault.is_head() || self.shot.contains(id);
        match state {
            "succeeded" => assert!(!is_long && ends.last() == Some(&attempt), "{}", shown()),
            "cancelled" => assert!(is_long, "{}", shown()),
            // Only a killed head may fail a run, and only one that is not to be tried again.
            "failed" => assert!(is_hit && !round.is_sturdy && reason == "node_failed", "{}", shown()),
            _ => panic!("{}", shown()),
        }
        if !is_hit && !is_long {
            let expected = match round.scenario {
                Scenario::Submit => 1,
                Scenario::Retry => 3,
                _ => attempt,
            };
            assert_eq!((attempt, &starts), (expected, &(1..=expected).collect::<Vec<_>>()), "{}", shown());
        }
    }
}

fn soak() -> bool {
    std::env::var_os("TOW_SOAK").is_some()
}

fn seed() -> u64 {
    std::env::var("TOW_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_115)
}

/// The points that a run on a far cluster passes.
fn points() -> Vec<Fault> {
    let ours = |point: &&&str| {
        ["client.", "daemon.submit.", "daemon.cancel.", "daemon.ended.committed", "daemon.requeue.committed"].iter().any(|begin| point.starts_with(begin))
    };
    let here = POINTS.iter().filter(ours).map(|point| Fault::Here(point));
    let far = FAR_POINTS.iter().map(|point| if point.starts_with("daemon.") { Fault::Here(point) } else { Fault::There(point) });
    here.chain(far).collect()
}

/// Scenarios that pass this point.
fn scenarios(fault: Fault) -> &'static [Scenario] {
    match fault.point() {
        Some(point) if point.starts_with("head.requeue") => &[Scenario::Limit],
        Some(point) if point.contains("requeue") => &[Scenario::Retry],
        Some(point) if point.contains("resubmit") => &[Scenario::Resubmit],
        Some(point) if point.contains("cancel") => &[Scenario::Abort, Scenario::Resubmit],
        Some(_) => &[Scenario::Submit, Scenario::Retry],
        None => &[Scenario::Submit, Scenario::Abort, Scenario::Resubmit, Scenario::Retry],
    }
}

#[test]
fn no_job_is_lost_and_none_doubled() {
    let mut campaign = Campaign::new(seed());
    let begun = Instant::now();
    let times = if soak() { 8 } else { 1 };
    for _ in 0..times {
        let mut cases = points();
        cases.extend(AT_RANDOM.repeat(if soak() { 3 } else { 1 }));
        // Those that take longest are under way while the others go through.
        cases.sort_by_key(|fault| (!fault.point().is_some_and(|point| point.starts_with("head.requeue")), !fault.is_head()));
        for fault in cases {
            let scenario = campaign.random.pick(scenarios(fault));
            campaign.round(scenario, fault);
        }
        campaign.settle();
    }
    let missed: Vec<_> = points().into_iter().filter_map(Fault::point).filter(|point| !campaign.passed.contains(point)).collect();
    let (rounds, kills, runs) = (campaign.rounds.len(), campaign.kills, campaign.lab.runs().len());
    println!("exactly once on Slurm: {rounds} rounds, {kills} faults, {runs} runs in {} s, none lost, none doubled", begun.elapsed().as_secs());
    assert!(missed.is_empty(), "nobody was killed at {missed:?}");
    assert!(!soak() || kills >= 300, "only {kills} faults happened");
}

/// The head, a runner, or what started them, of runs on two nodes: nothing of an attempt outlives them to meet the next.
#[test]
fn what_is_killed_on_a_node_leaves_nothing_alive() {
    let lab = Lab::new(&Options::default());
    let ids: Vec<String> = (0..5).map(|_| lab.submit(&["-f", "once.yaml", "--nodes", "2"])).collect();
    let second = |id: &str| lab.slurm.home("alice").join(format!("ledger.{id}.1.lock")).exists();
    until("all ranks to start", || ids.iter().all(|id| lab.has_started(id) && second(id)).then_some(()));
    // On each node one process guards another, which carries the ranks; `srun` has a second that does nothing.
    let shots: [(&str, bool, fn(&[(&str, String)]) -> usize); 5] =
        [("__head", false, |_| 0), ("__node", true, |_| 0), ("__node", false, |_| 0), ("__node", false, |all| all.len() - 1), ("__node", false, |_| 1)];
    for (id, (verb, is_srun, which)) in ids.iter().zip(shots) {
        let is_fit = |words: &str| words.contains(id.as_str()) && words.starts_with("srun") == is_srun;
        let mut all: Vec<(&str, String)> = Vec::new();
        for host in ["c1", "c2", "c3"] {
            all.extend(lab.over_there(host, verb).into_iter().filter(|(_, words)| is_fit(words)).map(|(pid, _)| (host, pid)));
        }
        let (host, pid) = &all[which(&all)];
        lab.shoot(host, pid);
    }
    lab.wait_for_all("heads and runners were shot");
    lab.nothing_was_doubled("heads and runners were shot");
    for id in &ids {
        lab.second_attempt_ends_well(id);
    }
    lab.nothing_is_left("heads and runners were shot");
}

/// A controller that is killed 1.5 s after it took a job has not written it down: it forgets it, and gives its id to another.
#[test]
fn a_forgotten_job_is_submitted_again_once() {
    let lab = Lab::new(&Options::default());
    let id = lab.forgotten("later.yaml");
    let strangers = lab.submit_beside(2);
    assert!(strangers.contains(&lab.job_of(&id)), "the id of {id} is given to another: {strangers:?}");
    lab.wait_for_all("a forgotten job");
    lab.ran_exactly_once(&id);
    let jobs = fs::read_to_string(lab.slurm.home("alice").join(".towline/submissions").join(&id).join("jobs")).unwrap();
    assert_eq!(jobs.matches("accepted").count(), 2, "{jobs}");
}

/// A controller that has forgotten a job which runs kills it. The run goes on with its next attempt, and none starts twice.
#[test]
fn a_running_job_that_is_forgotten_is_not_doubled() {
    let lab = Lab::new(&Options::default());
    std::thread::sleep(Duration::from_secs(6));
    lab.slurm.exec("login", "alice", ["sbatch", "--output=/dev/null", "--wrap", "true"]).ok();
    let ids: Vec<String> = (0..3).map(|_| lab.submit(&["-f", "some.yaml"])).collect();
    until("one of them to start", || ids.iter().any(|id| lab.has_started(id)).then_some(()));
    lab.slurm.kill_service("ctl", "slurmctld");
    lab.slurm.start_service("ctl", "slurmctld");
    lab.wait_for_all("running jobs that were forgotten");
    lab.nothing_was_doubled("running jobs that were forgotten");
    for id in &ids {
        assert_eq!(lab.home.state_of(id), "succeeded", "{}", lab.home.show(id));
        assert_eq!(lab.attempts("end", id).len(), 1, "{}", lab.ledger());
    }
    lab.nothing_is_left("running jobs that were forgotten");
}

/// A controller that has forgotten that a job runs has it killed, or starts it once more.
#[test]
fn a_job_whose_start_is_forgotten_runs_once() {
    let lab = Lab::new(&Options::default());
    std::thread::sleep(Duration::from_secs(6));
    let id = lab.submit(&["-f", "some.yaml"]);
    lab.until_started(&id);
    lab.slurm.kill_service("ctl", "slurmctld");
    lab.slurm.start_service("ctl", "slurmctld");
    lab.wait_for_all("a job whose start was forgotten");
    lab.nothing_was_doubled("a job whose start was forgotten");
    assert_eq!(lab.home.state_of(&id), "succeeded", "{}", lab.home.show(&id));
    assert_eq!(lab.attempts("end", &id).len(), 1, "{}", lab.ledger());
    lab.nothing_is_left("a job whose start was forgotten");
}

/// The wish to end a run whose job was forgotten does not reach the job that has its id now.
#[test]
fn the_end_of_a_forgotten_job_is_not_the_end_of_another() {
    let lab = Lab::new(&Options::default());
    let id = lab.forgotten("later.yaml");
    let strangers = lab.submit_beside(2);
    assert!(strangers.contains(&lab.job_of(&id)), "the id of {id} is given to another: {strangers:?}");
    lab.home.tow(["abort", &id]).ok();
    lab.wait_for_all("a forgotten job that is not wanted any more");
    assert_eq!(lab.home.state_of(&id), "cancelled");
    assert!(!lab.has_started(&id));
    assert_eq!(lab.queued().lines().count(), 2, "{}", lab.queued());
}

#[test]
fn a_run_does_not_notice_that_slurmd_was_killed() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["sh", "job.sh", "some", "60"]);
    lab.until_started(&id);
    let host = lab.host_of(&id);
    lab.slurm.kill_service(&host, "slurmd");
    std::thread::sleep(Duration::from_secs(3));
    lab.slurm.start_service(&host, "slurmd");
    lab.wait_for_all("slurmd was killed");
    lab.ran_exactly_once(&id);
    lab.nothing_is_left("slurmd was killed");
}

/// The node is given up while its copy of the job lives on: it ends before the next begins.
#[test]
fn a_copy_on_a_node_without_a_link_ends_before_the_next_begins() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "once.yaml"]);
    lab.until_started(&id);
    let host = lab.host_of(&id);
    let begun = Instant::now();
    lab.slurm.cut(&host);
    until("Slurm to give the node up and put the job back", || (!lab.queued().contains("RUNNING")).then_some(()));
    std::thread::sleep(Duration::from_secs(30).saturating_sub(begun.elapsed()));
    assert!(lab.attempts("end", &id).is_empty());
    lab.slurm.heal(&host);
    lab.second_attempt_ends_well(&id);
    lab.nothing_is_left("a link was cut");
}

#[test]
fn a_run_whose_node_lost_power_goes_on_elsewhere() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "once.yaml"]);
    lab.until_started(&id);
    let host = lab.host_of(&id);
    lab.slurm.kill_host(&host);
    lab.second_attempt_ends_well(&id);
    lab.slurm.start_host(&host);
    lab.nothing_is_left("a power cut");
}

/// The head lives on and notices that the other node is gone; the next attempt has two nodes again.
#[test]
fn a_run_that_lost_one_of_its_nodes_goes_on_with_others() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "once.yaml", "--nodes", "2"]);
    lab.until_started(&id);
    let claim = fs::read(lab.slurm.home("alice").join(".towline/runs").join(&id).join("attempt-1.claim")).unwrap();
    let claim: Value = serde_json::from_slice(&claim).unwrap();
    let host = claim["hosts"][1].as_str().unwrap();
    lab.slurm.kill_host(host);
    lab.second_attempt_ends_well(&id);
    lab.slurm.start_host(host);
    lab.nothing_is_left("a power cut of one of two nodes");
}

#[test]
fn a_controller_that_is_away_is_told_with_its_moment() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "long.yaml"]);
    lab.until_started(&id);
    lab.home.wait_for_state(&id, "running");
    lab.until_fresh(&id);
    let before = now();
    // What it has not written down yet it would forget.
    std::thread::sleep(Duration::from_secs(8));
    lab.slurm.kill_service("ctl", "slurmctld");
    let since = lab.until_stale(&id);
    assert!(since.as_str() >= before.as_str() && since < now(), "{since} lies between {before} and now");
    // It stays so, however often records alone can be read.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(15) {
        assert_eq!(lab.stale_since(&id), Some(since.clone()));
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(lab.home.state_of(&id), "running");
    let why = lab.home.tow(["ps"]).ok();
    assert!(why.stdout.contains("running?"), "{why:?}");
    lab.slurm.start_service("ctl", "slurmctld");
    lab.until_fresh(&id);
    lab.home.tow(["abort", "--wait", &id]).ok();
    assert_eq!((lab.home.state_of(&id).as_str(), lab.attempts("start", &id)), ("cancelled", vec![1]));
    lab.nothing_is_left("a controller was away");
}

/// `sbatch` hangs for most of a minute when munge is away.
#[test]
fn a_submission_waits_for_munge_and_is_not_doubled() {
    let lab = Lab::new(&Options::default());
    lab.submit(&["-f", "quick.yaml"]);
    lab.wait_for_all("before");
    lab.slurm.kill_service("login", "munged");
    let waiting = lab.home.spawn(["submit", "-f", "quick.yaml"]);
    until("the submission to be known", || lab.runs().iter().any(|run| run["ended"].is_null()).then_some(()));
    std::thread::sleep(Duration::from_secs(15));
    let open = lab.runs()[0].clone();
    assert!(open["ended"].is_null() && open["stale_since"].is_string(), "{open}");
    lab.slurm.start_service("login", "munged");
    let output = Output::from(waiting.wait_with_output().unwrap()).ok();
    lab.wait_for_all("munge was away");
    lab.ran_exactly_once(&output.id());
    lab.nothing_is_left("munge was away");
}

#[test]
fn logs_are_whole_after_the_bastion_was_away() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["sh", "job.sh", "some", "300"]);
    lab.until_started(&id);
    let following = lab.home.spawn(["logs", "-f", &id]);
    lab.until_fresh(&id);
    lab.slurm.kill_service("bastion", "sshd");
    lab.until_stale(&id);
    lab.slurm.start_service("bastion", "sshd");
    lab.until_fresh(&id);
    lab.wait_for_all("the bastion was away");
    lab.ran_exactly_once(&id);
    let lines: String = (0..300).map(|line| format!("line {line}\n")).collect();
    assert_eq!(lab.home.tow(["logs", &id]).ok().stdout, lines);
    assert_eq!(Output::from(following.wait_with_output().unwrap()).stdout, lines);
}

/// A line that is cut hangs before it breaks; that is said meanwhile.
#[test]
fn a_line_that_hangs_is_told_before_it_breaks() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["sh", "job.sh", "some", "300"]);
    lab.until_started(&id);
    lab.until_fresh(&id);
    lab.slurm.cut("login");
    let begun = Instant::now();
    lab.until_stale(&id);
    assert!(begun.elapsed() < Duration::from_secs(20), "told after {:?}", begun.elapsed());
    std::thread::sleep(Duration::from_secs(30).saturating_sub(begun.elapsed()));
    lab.slurm.heal("login");
    lab.until_fresh(&id);
    lab.wait_for_all("a line was cut");
    lab.ran_exactly_once(&id);
    lab.nothing_is_left("a line was cut");
}

fn now() -> String {
    towline_host::clock::now().to_string()
}

impl Lab {
    /// A run whose job was taken and then forgotten by the controller.
    fn forgotten(&self, file: &str) -> String {
        for _ in 0..5 {
            // It writes at once after a quiet time, and then not for five seconds.
            std::thread::sleep(Duration::from_secs(6));
            self.slurm.exec("login", "alice", ["sbatch", "--output=/dev/null", "--wrap", "true"]).ok();
            let id = self.submit(&["-f", file]);
            std::thread::sleep(Duration::from_millis(1500));
            self.slurm.kill_service("ctl", "slurmctld");
            self.slurm.start_service("ctl", "slurmctld");
            if !self.queued().contains(&id) {
                return id;
            }
            self.wait_for_all("a job that was not forgotten");
        }
        panic!("the controller forgets nothing");
    }

    /// Jobs that are none of ours, of the same user.
    fn submit_beside(&self, count: usize) -> Vec<String> {
        let words = ["sbatch", "--parsable", "--output=/dev/null", "--wrap", "sleep 300"];
        (0..count).map(|_| self.slurm.exec("login", "alice", words).ok().stdout.trim().to_owned()).collect()
    }

    /// The id that the cluster gave first.
    fn job_of(&self, run: &str) -> String {
        let jobs = fs::read_to_string(self.slurm.home("alice").join(".towline/submissions").join(run).join("jobs")).unwrap();
        let accepted = |line: &str| serde_json::from_str::<Value>(line).ok()?["accepted"]["job"].as_str().map(str::to_owned);
        jobs.lines().find_map(accepted).unwrap()
    }

    /// Where the first attempt of a run started.
    fn host_of(&self, run: &str) -> String {
        let begin = format!("start {run} 1 ");
        self.ledger().lines().find_map(|line| line.strip_prefix(&begin).map(str::to_owned)).unwrap()
    }

    #[track_caller]
    fn second_attempt_ends_well(&self, run: &str) {
        self.wait_for_all("the second attempt");
        let shown = self.home.show(run);
        assert_eq!((shown["state"].as_str(), shown["attempt"].as_u64()), (Some("succeeded"), Some(2)), "{shown}");
        assert_eq!((self.attempts("start", run), self.attempts("end", run)), (vec![1, 2], vec![2]), "{}", self.ledger());
        self.nothing_was_doubled(run);
    }

    fn stale_since(&self, run: &str) -> Option<String> {
        let runs = self.runs();
        let found = runs.iter().find(|known| known["id"] == run).unwrap();
        found["stale_since"].as_str().map(str::to_owned)
    }

    #[track_caller]
    fn until_stale(&self, run: &str) -> String {
        until(&format!("{run} to be stale"), || self.stale_since(run))
    }

    #[track_caller]
    fn until_fresh(&self, run: &str) {
        until(&format!("{run} to be fresh"), || self.stale_since(run).is_none().then_some(()));
    }
}
