//! Accepts a submission: it is written to disk, then answered, then scheduled.

use super::clients::{refuse, refuse_with};
use super::queue::Run;
use super::{Chosen, Daemon, Message, Replies, log, now};
use crate::ledger::{Write, Written};
use crate::machine::Machine;
use crate::schedule::{Holding, Waiting};
use std::fs;
use std::sync::Arc;
use towline_backends::local::render;
use towline_core::config::MAX_LOCAL_GPUS;
use towline_core::event::RunEvent;
use towline_core::plan::{PLAN_VERSION, Plan};
use towline_core::redact::SecretSet;
use towline_core::resolve::Resolved;
use towline_core::state::{Phase, RunState, Step, reduce};
use towline_core::{Error, Result, RunId};
use towline_engine::history::{ActiveRun, RunKey};
use towline_host::crash;
use towline_host::once::replace;
use towline_wire::cluster::NamedCluster;
use towline_wire::daemon::{Limits, RefusalKind, Reply, Submit};

/// How many plans stay in memory; others are read again when their run starts.
const PLANS_AT_HAND: usize = 16;

fn queued() -> RunState {
    RunState {
        phase: Phase::Queued,
        ..RunState::default()
    }
}

/// A run that starts with its submission: its start intent is in the same commit.
pub(super) struct FirstStart {
    runner: String,
    event: RunEvent,
    state: RunState,
}

impl Daemon {
    pub(super) fn submit(&mut self, submit: Submit, replies: Replies) {
        crash::pass("daemon.submit.received");
        let Submit {
            plan,
            secrets,
            limits,
            cluster,
        } = submit;
        if plan.version != PLAN_VERSION || plan.runs.is_empty() {
            let error = Error::unsupported("another version of tow made the plan");
            return refuse_with(&replies, &error);
        }
        if let Some(cluster) = cluster {
            return self.submit_to(&cluster, plan, &secrets.0, replies);
        }
        if plan
            .resolved
            .limits
            .as_ref()
            .is_some_and(|limits| !towline_host::limits::can_give(limits))
        {
            // A shell with lower limits started this daemon, and only a privileged process could
            // raise them again. The submitter starts the next daemon.
            refuse(
                &replies,
                RefusalKind::Leaving,
                "this daemon was started with a higher nice value or lower limits than the run is \
                    to have",
            );
            return self.leave();
        }
        self.set_limits(limits);
        let need = render::need(&plan.resolved.shape, self.machine.cpus);
        if let Err(error) = render::check_fits(&need, &self.machine.whole()) {
            return refuse_with(&replies, &error);
        }
        if let Err(error) = self.keep_secrets(&plan.id, &secrets.0) {
            let error = Error::from_io("the secrets cannot be stored", error);
            return refuse_with(&replies, &error);
        }
        let plan = Arc::new(plan);
        self.keep_plan(plan.clone());
        let first = self.start_at_once(&plan, need);
        let intent = first
            .as_ref()
            .map(|first| Box::new((first.event.clone(), first.state.clone())));
        let write = Write::Submit {
            plan: plan.clone(),
            state: queued(),
            at: now(),
            intent,
        };
        self.ledger
            .write(vec![write], true, move |result| Message::Submitted {
                plan,
                first,
                replies,
                result,
            });
    }

    /// Accepts a submission to a far cluster: it is written to disk, then answered, then sent.
    fn submit_to(
        &mut self,
        cluster: &NamedCluster,
        plan: Plan,
        secrets: &SecretSet,
        replies: Replies,
    ) {
        if let Err(error) = self.keep_cluster(cluster) {
            return refuse_with(&replies, &error);
        }
        if let Err(error) = self.keep_secrets(&plan.id, secrets) {
            let error = Error::from_io("the secrets cannot be stored", error);
            return refuse_with(&replies, &error);
        }
        let plan = Arc::new(plan);
        self.keep_plan(plan.clone());
        let state = RunState {
            phase: Phase::Staging,
            ..RunState::default()
        };
        let write = Write::Submit {
            plan: plan.clone(),
            state,
            at: now(),
            intent: None,
        };
        self.ledger
            .write(vec![write], true, move |result| Message::Submitted {
                plan,
                first: None,
                replies,
                result,
            });
    }

    /// Whether the one run of this submission can start now, before all others. Its part of the
    /// machine is reserved while the submission is written.
    fn start_at_once(&mut self, plan: &Plan, need: render::Need) -> Option<Box<FirstStart>> {
        let alone = plan.runs.len() == 1
            && self.queue.waiting_count() == 0
            && self.reserved.is_empty()
            && self.queue.key(&plan.runs[0].id).is_none();
        if !alone || self.starts_are_paused() || (need.gpus > 0 && !self.gpus_are_known()) {
            return None;
        }
        let waiting = Waiting {
            key: 0,
            tier: plan.resolved.tier,
            need,
            limit: None,
        };
        let (_, gpus) = self.decide([&waiting]).start.pop()?;
        let runner = self.runners.take_if_idle()?;
        crash::pass("daemon.dispatch.before");
        let event = RunEvent::AttemptIntent {
            attempt: 1,
            runner: runner.clone(),
            gpus: gpus.iter().copied().collect(),
            durable: true,
        };
        let Ok(Step::Changed(state)) = reduce(&queued(), &event) else {
            return None;
        };
        self.reserved.push(Holding {
            key: 0,
            tier: plan.resolved.tier,
            need,
            gpus,
            ends_at: None,
            leaving: false,
        });
        Some(Box::new(FirstStart {
            runner,
            event,
            state: *state,
        }))
    }

    pub(super) fn submitted(
        &mut self,
        plan: &Arc<Plan>,
        first: Option<Box<FirstStart>>,
        replies: &Replies,
        result: Result<Vec<Written>>,
    ) {
        if first.is_some() {
            self.reserved.clear();
            self.unsettled = true;
        }
        let keys = match result.map(|written| written.into_iter().next()) {
            Ok(Some(Written::Submitted(keys))) => keys,
            other => {
                let error = other
                    .err()
                    .unwrap_or_else(|| Error::bug("the history gave no keys"));
                self.give_up(&plan.id, first);
                return refuse_with(replies, &error);
            }
        };
        crash::pass("daemon.submit.committed");
        match keys {
            Some(keys) => self.enqueue(plan, &keys, first),
            // Sent twice: the history has it already. Its secrets are removed unless the run is
            // still open.
            None if self.queue.is_open(&plan.id) => self.put_back_first(first),
            None => self.give_up(&plan.id, first),
        }
        let _ = replies.send(Reply::Submitted {
            runs: plan.runs.iter().map(|run| run.id.clone()).collect(),
        });
        crash::pass("daemon.submit.answered");
    }

    fn enqueue(&mut self, plan: &Arc<Plan>, keys: &[RunKey], mut first: Option<Box<FirstStart>>) {
        if !plan.is_here() {
            for (key, run) in keys.iter().zip(&plan.runs) {
                let mut made = make_run(
                    *key,
                    run.id.clone(),
                    plan.id.clone(),
                    run.parameters.clone(),
                    &plan.resolved,
                    self.machine.cpus,
                );
                made.state.phase = Phase::Staging;
                made.far = Some(plan.cluster.clone());
                self.queue.insert(made);
            }
            return self.submit_far(&plan.cluster, &plan.id, false);
        }
        for (key, run) in keys.iter().zip(&plan.runs) {
            let mut made = make_run(
                *key,
                run.id.clone(),
                plan.id.clone(),
                run.parameters.clone(),
                &plan.resolved,
                self.machine.cpus,
            );
            let Some(first) = first.take() else {
                self.queue.insert(made);
                self.unsettled = true;
                continue;
            };
            made.state = first.state;
            self.runners.assign(&first.runner, *key, 1);
            self.queue.insert(made);
            crash::pass("daemon.dispatch.committed");
            if self.runners.is_there(&first.runner) {
                self.plan_read(
                    &Chosen {
                        key: *key,
                        attempt: 1,
                        runner: first.runner,
                    },
                    Ok(Some(plan.clone())),
                );
            } else {
                // The runner died while the submission was being written.
                self.runner_gone(&first.runner);
            }
        }
    }

    fn give_up(&mut self, id: &RunId, first: Option<Box<FirstStart>>) {
        self.put_back_first(first);
        self.drop_secrets(id);
    }

    fn put_back_first(&mut self, first: Option<Box<FirstStart>>) {
        if let Some(first) = first {
            self.runners.put_back(&first.runner);
        }
    }

    pub(super) fn keep_plan(&mut self, plan: Arc<Plan>) {
        if self.plans.len() >= PLANS_AT_HAND {
            self.plans.clear();
        }
        self.plans.insert(plan.id.clone(), plan);
    }

    /// Loads the runs that an earlier daemon left in the history.
    pub(super) fn load(&mut self, active: Vec<ActiveRun>) -> Result<()> {
        let mut last: Option<(RunId, Resolved, Option<String>)> = None;
        for run in active {
            if last.as_ref().is_none_or(|(id, ..)| *id != run.submission) {
                let Some(submission) = self.ledger.history().submission(&run.submission)? else {
                    continue;
                };
                let far = (!submission.plan.is_here()).then_some(submission.plan.cluster);
                last = Some((run.submission.clone(), submission.plan.resolved, far));
            }
            let Some((_, resolved, far)) = &last else {
                continue;
            };
            let mut loaded = make_run(
                run.key,
                run.id,
                run.submission,
                run.parameters,
                resolved,
                self.machine.cpus,
            );
            loaded.started = run.started;
            loaded.state = run.state;
            loaded.far.clone_from(far);
            self.queue.insert(loaded);
        }
        self.drop_orphaned_secrets();
        Ok(())
    }

    /// Sets the machine's limits, and stores them so that the next daemon has them before any
    /// client comes.
    pub(super) fn set_limits(&mut self, mut limits: Limits) {
        // An older client may have accepted a larger number.
        limits.gpus = limits.gpus.map(|gpus| gpus.min(MAX_LOCAL_GPUS));
        if self.machine.limits != limits {
            let written = serde_json::to_vec(&limits)
                .map_err(std::io::Error::other)
                .and_then(|bytes| replace(&self.state.limits(), &bytes));
            if let Err(error) = written {
                log(&format!(
                    "{} cannot be written: {error}; the next submission sends the limits again",
                    self.state.limits().display()
                ));
            }
            self.machine = Machine::new(limits);
            self.gpus.forget();
            self.unsettled = true;
        }
    }

    /// Writes the secrets to disk before their submission, in a file that only this user can read.
    /// If the same submission comes again while the disk is full, its first file stays complete.
    fn keep_secrets(&self, submission: &RunId, secrets: &SecretSet) -> std::io::Result<()> {
        if secrets.is_empty() {
            return Ok(());
        }
        towline_host::once::replace(&self.state.secret(submission), &secrets.to_private_bytes())
    }

    /// Reads the stored secrets. A file that cannot be read is an error, because it may hold some.
    pub(super) fn secrets(&self, submission: &RunId) -> Result<SecretSet> {
        let path = self.state.secret(submission);
        let unread = || Error::refused(format!("the secrets in {} cannot be read", path.display()));
        match towline_host::filesystem::read_if_there(&path)
            .map_err(|error| unread().source_error(error))?
        {
            Some(bytes) => SecretSet::from_private_bytes(&bytes).ok_or_else(unread),
            None => Ok(SecretSet::default()),
        }
    }

    pub(super) fn drop_secrets(&self, submission: &RunId) {
        let _ = fs::remove_file(self.state.secret(submission));
    }

    fn drop_orphaned_secrets(&self) {
        for entry in fs::read_dir(self.state.secrets())
            .into_iter()
            .flatten()
            .flatten()
        {
            let id = entry
                .file_name()
                .into_string()
                .ok()
                .and_then(|name| RunId::try_from(name).ok());
            if id.is_none_or(|id| !self.queue.is_open(&id)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn make_run(
    key: RunKey,
    id: RunId,
    submission: RunId,
    parameters: towline_core::sweep::Parameters,
    resolved: &Resolved,
    cpus: u32,
) -> Run {
    Run {
        key,
        id,
        submission,
        parameters,
        tier: resolved.tier,
        need: render::need(&resolved.shape, cpus),
        time: resolved.time.map(|time| time.0),
        retry: resolved.retry.clone().map(Box::new),
        state: queued(),
        started: None,
        far: None,
    }
}
