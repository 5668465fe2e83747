//! Runs on far clusters. Each cluster has a thread that talks to it, and its messages become
//! events.

mod agenda;
mod logs;
mod orders;
mod stage;
mod status;
mod worker;

pub(super) use orders::{Order, Word};
pub use stage::bring_code;

use super::{Daemon, Replies, Then, log, now};
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};
use towline_core::cluster::Cluster;
use towline_core::cluster::events::events;
use towline_core::cluster::{RunRef, RunReport};
use towline_core::event::RunEvent;
use towline_core::reason::Ending;
use towline_core::state::{Phase, cancelled};
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};
use towline_engine::history::RunKey;
use towline_host::crash;
use towline_wire::cluster::NamedCluster;
use towline_wire::daemon::{RefusalKind, Reply};

/// Opens a cluster from its configuration. The binary provides it, because only the binary sees all
/// crates.
pub type Opener = Arc<dyn Fn(&NamedCluster) -> Result<Arc<dyn Cluster>> + Send + Sync>;

/// The threads of the clusters that have runs.
pub(super) struct FarClusters {
    opener: Opener,
    /// The clusters as clients last described them, with what signing in needs.
    known: HashMap<String, NamedCluster>,
    threads: HashMap<String, Sender<Order>>,
}

impl FarClusters {
    pub(super) fn new(opener: Opener) -> Self {
        Self {
            opener,
            known: HashMap::new(),
            threads: HashMap::new(),
        }
    }
}

impl Daemon {
    /// Stores the configuration of a cluster, for this daemon and the next.
    pub(super) fn keep_cluster(&mut self, named: &NamedCluster) -> Result<()> {
        let path = self.state.cluster(&named.name, "definition");
        if self
            .far
            .known
            .insert(named.name.clone(), named.clone())
            .as_ref()
            == Some(named)
        {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&named.lasting())
            .map_err(|error| Error::bug("a cluster cannot be written").source_error(error))?;
        let failed =
            |error| Error::from_io("the configuration of the cluster cannot be stored", error);
        if std::fs::read(&path).map_or(true, |known| known != bytes) {
            towline_host::filesystem::private_folder(&self.state.clusters()).map_err(failed)?;
            towline_host::once::replace(&path, &bytes).map_err(failed)?;
        }
        // A thread that uses the old definition has to exit.
        if let Some(thread) = self.far.threads.remove(&named.name) {
            let _ = thread.send(Order::Leave);
            self.take_up_far(&named.name);
        }
        Ok(())
    }

    /// Sends an order to a cluster's thread, and starts the thread if there is none.
    pub(super) fn order(&mut self, cluster: &str, order: Order) {
        let mut order = order;
        let mut has_died = false;
        for _ in 0..2 {
            if let Some(thread) = self.far.threads.get(cluster) {
                match thread.send(order) {
                    // A new thread does not know the orders that the dead one had.
                    Ok(()) if has_died => return self.take_up_far(cluster),
                    Ok(()) => return,
                    Err(error) => (order, has_died) = (error.0, true),
                }
            }
            match self.start_thread(cluster) {
                Ok(thread) => {
                    self.far.threads.insert(cluster.to_owned(), thread);
                }
                Err(error) => {
                    log(&format!("cluster {cluster}: {error}"));
                    return refuse_order(order, &error);
                }
            }
        }
    }

    fn start_thread(&self, name: &str) -> Result<Sender<Order>> {
        let named: NamedCluster = match self.far.known.get(name) {
            Some(named) => Some(named.clone()),
            None => {
                NamedCluster::read(&self.state.cluster(name, "definition")).map_err(|error| {
                    Error::from_io(
                        format!("the stored configuration of cluster `{name}` cannot be read"),
                        error,
                    )
                })?
            }
        }
        .ok_or_else(|| {
            Error::not_found(format!(
                "the daemon has no configuration of cluster `{name}` any more"
            ))
            .hint("add it to the configuration again")
        })?;
        let backend = (self.far.opener)(&named)?;
        let asked = backend.clone();
        let (orders, received) = channel();
        if backend.caps().watches {
            let changed = std::sync::Mutex::new(orders.clone());
            backend.on_change(Arc::new(move || {
                let orders = changed.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = orders.send(Order::Changed);
            }));
        }
        let worker = worker::Worker {
            cluster: name.to_owned(),
            backend,
            state: self.state.clone(),
            orders: received,
            inbox: self.inbox.clone(),
            status: status::Status::new(self.state.cluster(name, "status"), move || {
                asked.trouble()
            }),
        };
        let started = std::thread::Builder::new()
            .name(format!("cluster {name}"))
            .spawn(move || worker.serve());
        started.map_err(|error| Error::bug("no thread").source_error(error))?;
        Ok(orders)
    }

    /// Takes over the runs that an earlier daemon left on far clusters.
    pub(super) fn take_up_all_far(&mut self) {
        let mut clusters: Vec<String> =
            self.queue.all().filter_map(|run| run.far.clone()).collect();
        clusters.sort_unstable();
        clusters.dedup();
        for cluster in clusters {
            self.take_up_far(&cluster);
        }
    }

    fn take_up_far(&mut self, cluster: &str) {
        let mine = || {
            self.queue
                .all()
                .filter(|run| run.far.as_deref() == Some(cluster))
        };
        // The cluster may have any of them: an earlier daemon may have died before it recorded
        // that.
        let all: Vec<RunRef> = mine()
            .map(|run| RunRef::known(&run.id, &run.state))
            .collect();
        let cancelled: Vec<RunRef> = mine()
            .filter(|run| run.state.cancel_requested)
            .map(|run| RunRef::known(&run.id, &run.state))
            .collect();
        let mut to_submit: Vec<RunId> = mine()
            .filter(|run| !is_there(run.state.phase))
            .map(|run| run.submission.clone())
            .collect();
        to_submit.sort_unstable();
        to_submit.dedup();
        self.order(cluster, Order::Watch { runs: all });
        for submission in to_submit {
            self.submit_far(cluster, &submission, true);
        }
        if !cancelled.is_empty() {
            self.order(cluster, Order::Cancel { runs: cancelled });
        }
    }

    /// Orders the cluster's thread to send a submission, from what is on disk.
    pub(super) fn submit_far(&mut self, cluster: &str, submission: &RunId, again: bool) {
        let plan = match self.plans.get(submission) {
            Some(plan) => Ok(Some(plan.clone())),
            None => self
                .ledger
                .history()
                .submission(submission)
                .map(|found| found.map(|submission| Arc::new(submission.plan))),
        };
        match plan.and_then(|plan| Ok(plan.zip(Some(self.secrets(submission)?)))) {
            Ok(Some((plan, secrets))) => {
                let plan = self.with_runs(plan, submission);
                self.order(
                    cluster,
                    Order::Submit {
                        plan,
                        secrets,
                        again,
                    },
                );
            }
            Ok(None) => log(&format!("{submission}: its plan is not in the history")),
            Err(error) => log(&format!("{submission}: {error}")),
        }
    }

    /// Adds the runs to a plan, because the history stores them apart.
    fn with_runs(
        &self,
        plan: Arc<towline_core::plan::Plan>,
        submission: &RunId,
    ) -> Arc<towline_core::plan::Plan> {
        if !plan.runs.is_empty() {
            return plan;
        }
        let mut runs: Vec<(RunKey, towline_core::plan::PlannedRun)> = self
            .queue
            .all()
            .filter(|run| run.submission == *submission)
            .map(|run| {
                (
                    run.key,
                    towline_core::plan::PlannedRun {
                        id: run.id.clone(),
                        name: run.id.to_string(),
                        parameters: run.parameters.clone(),
                    },
                )
            })
            .collect();
        runs.sort_by_key(|(key, _)| *key);
        let mut whole = (*plan).clone();
        whole.runs = runs.into_iter().map(|(_, run)| run).collect();
        Arc::new(whole)
    }

    pub(super) fn far_said(&mut self, cluster: &str, word: Word) {
        match word {
            Word::Staged { submission } => {
                self.for_each_of(&submission, |_| RunEvent::SubmitIntent);
            }
            Word::Submitted {
                submission,
                result: Ok(natives),
            } => {
                crash::pass("daemon.far.submitted");
                self.for_each_of(&submission, |run| {
                    let native = natives
                        .iter()
                        .find(|far| far.run == *run)
                        .and_then(|far| far.native.clone());
                    RunEvent::Submitted { native }
                });
                // The cluster has them now.
                self.once_written(Then::DropSecrets { submission });
            }
            Word::Submitted {
                submission,
                result: Err(error),
            } => {
                let ending = Ending::rejected(&error);
                self.for_each_of(&submission, |_| RunEvent::Ended {
                    attempt: 0,
                    ending: ending.clone(),
                });
            }
            Word::NotCancelled { runs } => {
                for (run, why) in runs {
                    if let Some(key) = self.queue.key(&run) {
                        self.far_event(key, RunEvent::CancelRefused { why });
                    }
                }
            }
            Word::Withdrawn { runs } => {
                for key in runs
                    .iter()
                    .filter_map(|run| self.queue.key(run))
                    .collect::<Vec<_>>()
                {
                    self.far_event(
                        key,
                        RunEvent::Ended {
                            attempt: 0,
                            ending: cancelled(),
                        },
                    );
                }
            }
            Word::Looked { replies } => self.ledger.read(move |_| {
                let _ = replies.send(Reply::Refreshed);
                super::Message::JournalsRemoved
            }),
            Word::Observed { reports } => reports.iter().for_each(|report| self.far_report(report)),
        }
        self.unwatch_ended(cluster);
    }

    fn for_each_of(&mut self, submission: &RunId, make: impl Fn(&RunId) -> RunEvent) {
        let runs: Vec<(RunKey, RunId)> = self
            .queue
            .all()
            .filter(|run| run.submission == *submission)
            .map(|run| (run.key, run.id.clone()))
            .collect();
        for (key, run) in runs {
            self.far_event(key, make(&run));
        }
    }

    fn far_report(&mut self, report: &RunReport) {
        let Some(key) = self.queue.key(&report.run) else {
            return;
        };
        let policy = self.run_of(key).and_then(|run| run.retry.clone());
        // A record proves that the cluster took the run, even if its answer was lost.
        if !report.attempts.is_empty() {
            let native = report.native.as_ref().map(|native| native.id.clone());
            self.far_event(key, RunEvent::Submitted { native });
        }
        for (event, at) in events(report, policy.as_deref()) {
            self.far_event_at(key, event, at.unwrap_or_else(now));
        }
    }

    fn far_event(&mut self, key: RunKey, event: RunEvent) {
        self.far_event_at(key, event, now());
    }

    fn far_event_at(&mut self, key: RunKey, event: RunEvent, at: Moment) {
        let Some(announced) = self.apply(key, event, at) else {
            return;
        };
        if announced.state.phase.is_ended()
            && let Some(run) = self.run_of(key)
            && let Some(cluster) = run.far.clone()
        {
            let id = run.id.clone();
            self.ended_far.push((cluster, id));
        }
        self.record_end(key, announced);
    }

    fn unwatch_ended(&mut self, cluster: &str) {
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.ended_far)
            .into_iter()
            .partition(|(name, _)| name == cluster);
        self.ended_far = kept;
        if !gone.is_empty() {
            self.order(
                cluster,
                Order::Unwatch {
                    runs: gone.into_iter().map(|(_, run)| run).collect(),
                },
            );
        }
    }

    /// Makes clusters delete what they store of ended runs. A cluster that cannot be reached keeps
    /// it.
    pub(super) fn forget_far(&mut self, runs: &[RunId]) {
        let mut by_cluster: HashMap<String, Vec<RunRef>> = HashMap::new();
        // Grouped by submission, because a sweep may have many runs.
        let mut clusters: HashMap<RunId, Option<String>> = HashMap::new();
        for run in runs {
            let Ok(Some(submission)) = self.ledger.history().submission_id_of(run) else {
                continue;
            };
            let cluster = clusters.entry(submission).or_insert_with_key(|submission| {
                let plan = self
                    .ledger
                    .history()
                    .submission(submission)
                    .ok()
                    .flatten()?
                    .plan;
                // Adopted runs belong to another machine or another tool.
                (!plan.is_here() && plan.adopted.is_none()).then_some(plan.cluster)
            });
            if let Some(cluster) = cluster.clone() {
                by_cluster
                    .entry(cluster)
                    .or_default()
                    .push(self.far_run(run));
            }
        }
        for (cluster, runs) in by_cluster {
            self.order(&cluster, Order::Forget { runs });
        }
    }

    /// A run with its name on the cluster, ended or not.
    pub(super) fn far_run(&self, run: &RunId) -> RunRef {
        if let Some(live) = self.queue.key(run).and_then(|key| self.run_of(key)) {
            return RunRef::known(run, &live.state);
        }
        let stored = self.ledger.history().run(run).ok().flatten();
        stored.map_or_else(
            || RunRef::of(run),
            |record| RunRef::known(run, &record.state),
        )
    }

    /// The far cluster of a run that ended after its client had last read of it.
    fn cluster_of_ended(&self, run: &RunId) -> Option<String> {
        let stored = self.ledger.history().run(run).ok().flatten()?;
        let is_far = self.far.known.contains_key(&stored.cluster)
            || self.far.threads.contains_key(&stored.cluster);
        is_far.then_some(stored.cluster)
    }

    /// Sends an order about a run to its cluster, if it has one.
    pub(super) fn ask_far(
        &mut self,
        run: &RunId,
        cluster: Option<String>,
        replies: Replies,
        make: impl FnOnce(Replies) -> Order,
    ) {
        let cluster = cluster
            .or_else(|| {
                let live = self.queue.key(run).and_then(|key| self.run_of(key));
                live.and_then(|run| run.far.clone())
            })
            .or_else(|| self.cluster_of_ended(run));
        match cluster {
            Some(cluster) => self.order(&cluster, make(replies)),
            None => super::clients::refuse(
                &replies,
                RefusalKind::NotFound,
                format!("{run} is on no far cluster"),
            ),
        }
    }
}

/// Whether the cluster is known to have the run. If unsure, the submission is sent again, which is
/// harmless.
const fn is_there(phase: Phase) -> bool {
    !matches!(phase, Phase::Drafted | Phase::Staging | Phase::Submitting)
}

fn refuse_order(order: Order, error: &Error) {
    let (Order::Logs { replies, .. } | Order::Explain { replies, .. } | Order::Look { replies }) =
        order
    else {
        return;
    };
    super::clients::refuse_with(&replies, error);
}
