//! Runs on far clusters. Each cluster has a thread that talks to it, and its reports become events.

use super::ledger::{Query, ReadThen, StoredRun};
use super::{Daemon, Effect, Order, Report};
use std::collections::BTreeMap;
use std::sync::Arc;
use towline_core::cluster::events::events;
use towline_core::cluster::{RunRef, RunReport};
use towline_core::event::RunEvent;
use towline_core::plan::{Plan, PlannedRun};
use towline_core::reason::Ending;
use towline_core::state::{Phase, cancelled};
use towline_core::time::Moment;
use towline_core::{Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::daemon::RefusalKind;

/// A client's request about a far run.
#[derive(Debug, Clone, Copy)]
pub(super) enum FarRequest {
    Look,
    Logs,
    Explain,
}

impl Daemon {
    /// Sends an order to a cluster's thread.
    pub(super) fn order(&mut self, cluster: String, order: Order) {
        self.effect(Effect::Order { cluster, order });
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

    pub(super) fn take_up_far(&mut self, cluster: &str) {
        // One that is held back is not there, and is sent when it is released.
        let mine = || {
            self.queue
                .all()
                .filter(|run| run.far.as_deref() == Some(cluster))
                .filter(|run| !(run.is_unsent() && run.state.is_blocked()))
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
        let name = cluster.to_owned();
        self.order(name.clone(), Order::Watch { runs: all });
        for submission in to_submit {
            self.submit_far(cluster, &submission, true);
        }
        if !cancelled.is_empty() {
            // Behind the submissions, of which some are read from the history first.
            let runs = cancelled;
            self.ledger.read(
                Query::Nothing,
                ReadThen::CancelFar {
                    cluster: name,
                    runs,
                },
            );
        }
    }

    /// Orders the cluster's thread to send a submission, from what is on disk.
    pub(super) fn submit_far(&mut self, cluster: &str, submission: &RunId, again: bool) {
        match self.plans.get(submission) {
            Some(plan) => {
                let plan = plan.clone();
                self.far_plan_read(cluster, submission, again, Ok(Some(plan)));
            }
            None => self.ledger.read(
                Query::Plan(submission.clone()),
                ReadThen::SubmitFar {
                    cluster: cluster.to_owned(),
                    submission: submission.clone(),
                    again,
                },
            ),
        }
    }

    pub(super) fn far_plan_read(
        &mut self,
        cluster: &str,
        submission: &RunId,
        again: bool,
        plan: Result<Option<Arc<Plan>>>,
    ) {
        match plan {
            Ok(Some(plan)) => {
                let plan = self.with_runs(plan, submission);
                self.order(cluster.to_owned(), Order::Submit { plan, again });
            }
            Ok(None) => self.log(format!("{submission}: its plan is not in the history")),
            Err(error) => self.log(format!("{submission}: {error}")),
        }
    }

    /// Adds the runs to a plan, because the history stores them apart.
    fn with_runs(&self, plan: Arc<Plan>, submission: &RunId) -> Arc<Plan> {
        if !plan.runs.is_empty() {
            return plan;
        }
        let mine = self.queue.all().filter(|run| run.submission == *submission);
        let mut runs: Vec<(RunKey, PlannedRun)> = mine
            .map(|run| {
                let planned = PlannedRun {
                    id: run.id.clone(),
                    name: run.id.to_string(),
                    parameters: run.parameters.clone(),
                };
                (run.key, planned)
            })
            .collect();
        runs.sort_by_key(|(key, _)| *key);
        let mut whole = (*plan).clone();
        whole.runs = runs.into_iter().map(|(_, run)| run).collect();
        Arc::new(whole)
    }

    pub(super) fn far_said(&mut self, cluster: &str, report: Report) {
        match report {
            Report::Staged { submission } => {
                self.for_each_of(&submission, |_| RunEvent::SubmitIntent);
            }
            Report::Submitted {
                submission,
                result: Ok(natives),
            } => {
                self.pass("daemon.far.submitted");
                self.for_each_of(&submission, |run| {
                    let native = natives
                        .iter()
                        .find(|far| far.run == *run)
                        .and_then(|far| far.native.clone());
                    RunEvent::Submitted { native }
                });
                // The cluster has them now.
                let then = self.after_last(Some(submission));
                self.once_written(then);
            }
            Report::Submitted {
                submission,
                result: Err(error),
            } => {
                let ending = Ending::rejected(&error);
                self.for_each_of(&submission, |_| RunEvent::Ended {
                    attempt: 0,
                    ending: ending.clone(),
                });
            }
            Report::NotCancelled { runs } => {
                for (run, why) in runs {
                    if let Some(key) = self.queue.key(&run) {
                        self.far_event(key, RunEvent::CancelRefused { why });
                    }
                }
            }
            Report::Withdrawn { runs } => {
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
            Report::Changed {
                done,
                refused,
                change,
                connection,
            } => self.far_changed(done, refused, &change, connection),
            Report::Looked { connection } => self
                .ledger
                .read(Query::Nothing, ReadThen::Refreshed { connection }),
            Report::Answered { connection, reply } => {
                self.fetching.remove(&connection);
                self.reply(connection, *reply);
            }
            Report::Observed { reports } => {
                for report in &reports {
                    self.far_report(report);
                }
            }
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
            self.far_event_at(key, event, at.unwrap_or(self.now.wall));
        }
    }

    fn far_event(&mut self, key: RunKey, event: RunEvent) {
        self.far_event_at(key, event, self.now.wall);
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
            let runs = gone.into_iter().map(|(_, run)| run).collect();
            self.order(cluster.to_owned(), Order::Unwatch { runs });
        }
    }

    /// Makes clusters delete what they store of ended runs. A cluster that cannot be reached keeps
    /// it.
    pub(super) fn forget_far(&mut self, runs: Vec<StoredRun>) {
        let mut by_cluster: BTreeMap<String, Vec<RunRef>> = BTreeMap::new();
        for StoredRun { run, far, state } in runs {
            // A run that goes on still needs what its cluster stores.
            let ended = far.filter(|_| state.phase.is_ended() && self.queue.key(&run).is_none());
            if let Some(cluster) = ended {
                let known = RunRef::known(&run, &state);
                by_cluster.entry(cluster).or_default().push(known);
            }
        }
        for (cluster, runs) in by_cluster {
            self.order(cluster, Order::Forget { runs });
        }
    }

    /// Sends a request about a run to its cluster, if it has one. The history knows the cluster of
    /// a run that has ended.
    pub(super) fn ask_far(&mut self, connection: u64, run: RunId, request: FarRequest) {
        let live = self.queue.key(&run).and_then(|key| self.run_of(key));
        let known = live.and_then(|live| {
            let cluster = live.far.clone()?;
            Some((cluster, RunRef::known(&run, &live.state)))
        });
        match known {
            Some((cluster, far)) => self.ask_cluster(connection, cluster, far, request),
            None => self.ledger.read(
                Query::Run(run.clone()),
                ReadThen::AskFar {
                    connection,
                    run,
                    request,
                },
            ),
        }
    }

    pub(super) fn ask_stored(
        &mut self,
        connection: u64,
        run: &RunId,
        request: FarRequest,
        stored: Result<Option<StoredRun>>,
    ) {
        match stored.ok().flatten() {
            Some(StoredRun {
                far: Some(cluster),
                state,
                ..
            }) => self.ask_cluster(connection, cluster, RunRef::known(run, &state), request),
            _ => self.refuse(
                connection,
                RefusalKind::NotFound,
                format!("{run} is on no far cluster"),
            ),
        }
    }

    fn ask_cluster(&mut self, connection: u64, cluster: String, run: RunRef, request: FarRequest) {
        let order = match request {
            FarRequest::Look => Order::Look { connection },
            FarRequest::Explain => Order::Explain { run, connection },
            FarRequest::Logs => {
                self.fetching.insert(connection, cluster.clone());
                Order::Logs { run, connection }
            }
        };
        self.order(cluster, order);
    }

    /// Spares a cluster the logs of a client that has hung up.
    pub(super) fn abandon(&mut self, connection: u64) {
        if let Some(cluster) = self.fetching.remove(&connection) {
            self.order(cluster, Order::Abandon { connection });
        }
    }
}

/// Whether the cluster is known to have the run. If unsure, the submission is sent again, which is
/// harmless.
const fn is_there(phase: Phase) -> bool {
    !matches!(phase, Phase::Drafted | Phase::Staging | Phase::Submitting)
}
