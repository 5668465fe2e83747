//! The world: everything there is, and how one action changes it.

use crate::action::{Action, ClusterAct, Fault, Job};
use crate::client::{Client, Want};
use crate::cluster::Cluster;
use crate::daemon::DaemonProcess;
use crate::facts::Facts;
use crate::history::History;
use crate::plans::Plans;
use crate::runner::{Journal, Runner, Stage, own_ending};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use towline_core::RunId;
use towline_core::after::{After, Condition};
use towline_core::change::{Change, Edit};
use towline_core::job::Tier;
use towline_core::resolve::Shape;
use towline_core::time::Moment;
use towline_server::daemon::{Input, Now};

/// The number of far clusters.
pub(crate) const CLUSTERS: usize = 2;
/// When a story begins, by the system's clock.
const FIRST_MOMENT: i64 = 1_700_000_000_000;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plans: Plans,
    pub(crate) now: Duration,
    /// How far the system's clock is from the true time, in milliseconds.
    pub(crate) clock_offset: i64,
    pub(crate) boot: u64,
    pub(crate) history: History,
    pub(crate) journals: BTreeMap<String, Journal>,
    pub(crate) secrets: BTreeSet<RunId>,
    pub(crate) has_reserve: bool,
    pub(crate) disk_is_full: bool,
    pub(crate) is_unreadable: bool,
    pub(crate) has_no_processes: bool,
    pub(crate) daemon: Option<DaemonProcess>,
    pub(crate) daemons: u64,
    pub(crate) connections: u64,
    pub(crate) runners: Vec<Runner>,
    pub(crate) clients: Vec<Client>,
    pub(crate) clusters: Vec<Cluster>,
    /// How many bytes of the logs of far runs are on this machine.
    pub(crate) logs: BTreeMap<RunId, u64>,
    pub(crate) submissions: u32,
    pub(crate) runs: Vec<RunId>,
    pub(crate) facts: Facts,
    /// What happened, if somebody wants to read it.
    pub(crate) trace: Option<Vec<String>>,
}

impl World {
    pub(crate) fn new(plans: &Plans) -> Self {
        Self {
            plans: plans.clone(),
            now: Duration::ZERO,
            clock_offset: 0,
            boot: 1,
            history: History::default(),
            journals: BTreeMap::new(),
            secrets: BTreeSet::new(),
            has_reserve: false,
            disk_is_full: false,
            is_unreadable: false,
            has_no_processes: false,
            daemon: None,
            daemons: 0,
            connections: 0,
            runners: Vec::new(),
            clients: Vec::new(),
            clusters: (0..CLUSTERS).map(|_| Cluster::default()).collect(),
            logs: BTreeMap::new(),
            submissions: 0,
            runs: Vec::new(),
            facts: Facts::default(),
            trace: None,
        }
    }

    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(text());
        }
    }

    pub(crate) fn wall(&self) -> Moment {
        let millis = i64::try_from(self.now.as_millis()).unwrap_or(0);
        Moment(FIRST_MOMENT + millis + self.clock_offset)
    }

    /// The time, as a daemon that began at `began` sees it.
    pub(crate) fn time_of(&self, began: Duration) -> Now {
        Now {
            wall: self.wall(),
            steady: self.now.saturating_sub(began),
        }
    }

    pub(crate) fn act(&mut self, action: &Action) {
        match action {
            Action::Daemon(steps) => {
                for _ in 0..*steps {
                    self.daemon_step();
                }
            }
            Action::Task(which) => self.finish_task(*which),
            Action::Runner(which) => self.runner_step(*which),
            Action::Client(which) => self.client_step(*which),
            Action::Worker { cluster, steps } => {
                for _ in 0..*steps {
                    self.worker_step(*cluster);
                }
            }
            Action::Cluster { cluster, act } => self.cluster_act(*cluster, *act),
            Action::Time(millis) => self.pass_time(*millis),
            Action::Submit(job) => self.submit(*job),
            Action::Cancel(run) => self.new_client(*run, Want::Cancel),
            Action::Watch(run) => self.new_client(*run, Want::Watch),
            Action::Logs(run) => self.new_client(*run, Want::Logs),
            Action::Hold(run) => self.new_client(*run, |run| Want::Change(run, Change::Hold)),
            Action::Resume(run) => self.new_client(*run, |run| Want::Change(run, Change::Resume)),
            Action::Edit { run, gpus, tier } => {
                let change = edit(*gpus, *tier);
                self.new_client(*run, |run| Want::Change(run, change));
            }
            Action::Forget(run) => self.new_client(*run, Want::Forget),
            Action::RanksEnd { runner, how } => self.ranks_end(*runner, *how),
            Action::Fault(fault) => self.fault(*fault),
        }
        if let Some(defect) = self.history.defects.pop() {
            self.facts.break_promise(defect);
        }
    }

    fn submit(&mut self, job: Job) {
        self.submissions += 1;
        let number = self.submissions;
        let before = job.after.and_then(|(run, when)| {
            let run = self.runs.get(run % self.runs.len().max(1))?.clone();
            let when = Condition::ALL[when % Condition::ALL.len()];
            Some(After { run, when })
        });
        let after: Vec<After> = before.into_iter().collect();
        let submit = self.plans.submit(job, number, &after);
        for run in submit.plan.runs {
            if let Some(after) = after.first() {
                self.facts.after.insert(run.id.clone(), after.clone());
            }
            self.runs.push(run.id);
        }
        let want = Want::Submit { job, number, after };
        self.clients.push(Client::new(want));
    }

    fn new_client(&mut self, run: usize, want: impl FnOnce(RunId) -> Want) {
        if let Some(run) = self.runs.get(run % self.runs.len().max(1)) {
            self.clients.push(Client::new(want(run.clone())));
        }
    }

    fn pass_time(&mut self, millis: u64) {
        let second = self.now.as_secs();
        self.now += Duration::from_millis(millis);
        if self.now.as_secs() != second
            && let Some(daemon) = &mut self.daemon
        {
            daemon.inbox.push_back(Input::Tick { is_needed: true });
        }
    }

    fn cluster_act(&mut self, cluster: usize, act: ClusterAct) {
        let now = self.wall();
        let Some(cluster) = self.clusters.get_mut(cluster % CLUSTERS) else {
            return;
        };
        match act {
            ClusterAct::Start(job) => {
                if let Some((run, attempt)) = cluster.start(job, now) {
                    self.facts.begin_far(&run, attempt);
                    self.facts.check_begin(&run, &self.history);
                }
            }
            ClusterAct::Print { job, bytes } => cluster.print(job, bytes),
            ClusterAct::End { job, how } => cluster.end(job, how, now),
            ClusterAct::List => cluster.list(),
        }
    }

    /// The ranks of a runner that carries an attempt end by themselves.
    fn ranks_end(&mut self, runner: usize, how: usize) {
        let count = self.runners.len().max(1);
        let Some(runner) = self.runners.get_mut(runner % count) else {
            return;
        };
        if let Some(attempt) = runner.attempt.as_mut().filter(|_| runner.is_alive)
            && attempt.stage == Stage::Running
        {
            attempt.stage = Stage::Ended(own_ending(how));
            self.facts.end_ranks(&attempt.run);
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.note(|| format!("fault: {fault:?}"));
        match fault {
            Fault::KillDaemon => self.daemon_dies(),
            Fault::KillRunner(which) => self.kill_runner(which, false),
            Fault::KillRunnerAndGuard(which) => self.kill_runner(which, true),
            Fault::KillClient(which) => self.kill_client(which),
            Fault::PowerCut { kept } => self.power_cut(kept),
            Fault::DiskFull(on) => self.disk_is_full = on,
            Fault::Unreadable(on) => self.is_unreadable = on,
            Fault::NoProcesses(on) => self.has_no_processes = on,
            Fault::ClockJump(millis) => self.clock_offset += millis,
            Fault::Network { cluster, is_up } => {
                self.clusters[cluster % CLUSTERS].is_down = !is_up;
            }
            Fault::LoseAnswer(cluster) => self.clusters[cluster % CLUSTERS].loses_answer = true,
            Fault::Refuse { cluster, on } => self.clusters[cluster % CLUSTERS].refuses = on,
            Fault::CutRunner(which) => self.cut_runner(which),
        }
    }

    fn kill_client(&mut self, which: usize) {
        let count = self.clients.len().max(1);
        let Some(client) = self.clients.get_mut(which % count) else {
            return;
        };
        client.is_done = true;
        if let Some((connection, daemon)) = client.connection.take() {
            self.hang_up(connection, daemon);
        }
    }

    /// A client has closed its connection.
    pub(crate) fn hang_up(&mut self, connection: u64, of: u64) {
        if let Some(daemon) = self.daemon.as_mut().filter(|daemon| daemon.number == of) {
            daemon.connections.remove(&connection);
            daemon.inbox.push_back(Input::HungUp { connection });
        }
    }

    /// Everything on this machine dies. What is not synced may be lost.
    fn power_cut(&mut self, kept: usize) {
        self.daemon_dies();
        self.boot += 1;
        self.runners.clear();
        self.facts.alive.clear();
        self.history.power_cut(kept);
        for journal in self.journals.values_mut() {
            journal.power_cut(kept);
        }
        // The name of a file is lost with its bytes, unless some of them were synced.
        let all = kept >= 4;
        self.journals
            .retain(|_, journal| all || !journal.records.is_empty());
        for client in &mut self.clients {
            client.is_done = true;
        }
    }
}

/// Another tier and another number of GPUs.
fn edit(gpus: u32, tier: usize) -> Change {
    Change::Edit(Box::new(Edit {
        tier: Some(Tier::ALL[tier % Tier::ALL.len()]),
        time: None,
        shape: Some(Shape {
            nodes: 1,
            ranks_per_node: 1,
            once: false,
            gpus_per_node: gpus,
            cpus_per_node: None,
            memory: None,
        }),
    }))
}
