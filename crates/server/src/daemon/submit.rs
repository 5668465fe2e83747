//! Accepts a submission: it is written to disk, then answered, then scheduled.

use super::ledger::{Submission, Write, WriteThen, Written};
use super::queue::Run;
use super::{Chosen, Daemon, Effect, FoundRun};
use crate::schedule::{Holding, Waiting};
use std::sync::Arc;
use towline_backends::local::render;
use towline_core::config::MAX_LOCAL_GPUS;
use towline_core::event::RunEvent;
use towline_core::plan::{PLAN_VERSION, Plan};
use towline_core::redact::SecretSet;
use towline_core::resolve::Resolved;
use towline_core::state::{Phase, RunState, Step, reduce};
use towline_core::{Error, Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::cluster::NamedCluster;
use towline_wire::daemon::{Limits, RefusalKind, Reply, Submit};

/// How many plans stay in memory; others are read again when their run starts.
const PLANS_AT_HAND: usize = 16;

/// The state of a new run on this machine.
fn queued(plan: &Plan) -> RunState {
    RunState {
        phase: Phase::Queued,
        after: plan.after.clone(),
        ..RunState::default()
    }
}

/// The state of a new run on a far cluster. One that waits for others is not sent yet.
fn far(plan: &Plan) -> RunState {
    RunState {
        phase: if plan.after.is_empty() {
            Phase::Staging
        } else {
            Phase::Drafted
        },
        after: plan.after.clone(),
        ..RunState::default()
    }
}

/// A run that starts with its submission: its start intent is in the same commit.
#[derive(Debug)]
pub(super) struct FirstStart {
    runner: String,
    event: RunEvent,
    state: RunState,
}

impl Daemon {
    pub(super) fn submit(&mut self, submit: Submit, limits_are_possible: bool, connection: u64) {
        self.pass("daemon.submit.received");
        let Submit {
            plan,
            secrets,
            limits,
            cluster,
        } = submit;
        if plan.version != PLAN_VERSION || plan.runs.is_empty() {
            let error = Error::unsupported("another version of tow made the plan");
            return self.refuse_with(connection, &error);
        }
        if let Some(cluster) = cluster {
            return self.submit_to(cluster, plan, secrets.0, connection);
        }
        if !limits_are_possible {
            // A shell with lower limits started this daemon, and only a privileged process could
            // raise them again. The submitter starts the next daemon.
            self.refuse(
                connection,
                RefusalKind::Leaving,
                "this daemon was started with a higher nice value or lower limits than the run is \
                    to have",
            );
            return self.effect(Effect::Leave);
        }
        self.set_limits(limits);
        let need = render::need(&plan.resolved.shape, self.machine.cpus);
        if let Err(error) = render::check_fits(&need, &self.machine.whole()) {
            return self.refuse_with(connection, &error);
        }
        let plan = Arc::new(plan);
        let first = self.start_at_once(&plan, need);
        let intent = first
            .as_ref()
            .map(|first| Box::new((first.event.clone(), first.state.clone())));
        let submission = Submission {
            state: queued(&plan),
            plan,
            at: self.now.wall,
            intent,
            secrets: secrets.0,
            cluster: None,
        };
        self.write_submission(submission, first, connection);
    }

    /// Accepts a submission to a far cluster: it is written to disk, then answered, then sent.
    fn submit_to(
        &mut self,
        cluster: NamedCluster,
        plan: Plan,
        secrets: SecretSet,
        connection: u64,
    ) {
        let submission = Submission {
            state: far(&plan),
            plan: Arc::new(plan),
            at: self.now.wall,
            intent: None,
            secrets,
            cluster: Some(cluster),
        };
        self.write_submission(submission, None, connection);
    }

    fn write_submission(
        &mut self,
        submission: Submission,
        first: Option<Box<FirstStart>>,
        connection: u64,
    ) {
        let plan = submission.plan.clone();
        if !submission.secrets.is_empty() {
            self.secrets.insert(plan.id.clone());
        }
        self.keep_plan(plan.clone());
        let then = WriteThen::Submitted {
            plan,
            first,
            connection,
        };
        self.ledger
            .write(vec![Write::Submit(Box::new(submission))], true, then);
    }

    /// Whether the one run of this submission can start now, before all others. Its part of the
    /// machine is reserved while the submission is written.
    fn start_at_once(&mut self, plan: &Plan, need: render::Need) -> Option<Box<FirstStart>> {
        let alone = plan.runs.len() == 1
            && plan.after.is_empty()
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
        let runner = self.runners.take_idle()?;
        self.pass("daemon.dispatch.before");
        let event = RunEvent::AttemptIntent {
            attempt: 1,
            runner: runner.clone(),
            gpus: gpus.iter().copied().collect(),
            durable: true,
        };
        let Ok(Step::Changed(state)) = reduce(&queued(plan), &event) else {
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
        connection: u64,
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
                return self.refuse_with(connection, &error);
            }
        };
        self.pass("daemon.submit.committed");
        match keys {
            Some(keys) => self.enqueue(plan, &keys, first),
            // Sent twice: the history has it already. Its secrets are removed unless the run is
            // still open.
            None => self.give_up(&plan.id, first),
        }
        let runs = plan.runs.iter().map(|run| run.id.clone()).collect();
        self.reply(connection, Reply::Submitted { runs });
        self.pass("daemon.submit.answered");
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
                made.state = far(plan);
                made.far = Some(plan.cluster.clone());
                self.queue.insert(made);
            }
            return self.send_or_wait(plan, keys);
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
            made.state = queued(plan);
            let Some(first) = first.take() else {
                self.queue.insert(made);
                self.judge_before(*key);
                self.unsettled = true;
                continue;
            };
            made.state = first.state;
            self.runners.assign(&first.runner, *key, 1);
            self.queue.insert(made);
            self.pass("daemon.dispatch.committed");
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
        self.judge_dependents();
    }

    fn send_or_wait(&mut self, plan: &Plan, keys: &[RunKey]) {
        if plan.after.is_empty() {
            return self.submit_far(&plan.cluster, &plan.id, false);
        }
        for key in keys {
            self.judge_before(*key);
        }
        self.judge_dependents();
    }

    fn give_up(&mut self, id: &RunId, first: Option<Box<FirstStart>>) {
        self.put_back_first(first);
        // The same submission may have come before: then its runs need them.
        if !self.queue.is_open(id) {
            self.drop_secrets(id.clone());
        }
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

    /// Loads the runs that an earlier daemon left in the history, and removes secrets that no run
    /// needs.
    pub(super) fn load(&mut self, runs: Vec<FoundRun>, secrets: Vec<RunId>) {
        for FoundRun { run, resolved, far } in runs {
            let mut loaded = make_run(
                run.key,
                run.id,
                run.submission,
                run.parameters,
                &resolved,
                self.machine.cpus,
            );
            loaded.started = run.started;
            if let Some(edit) = &run.state.edited {
                loaded.edit(edit, self.machine.cpus);
            }
            loaded.state = run.state;
            loaded.far = far;
            self.queue.insert(loaded);
        }
        let keys: Vec<RunKey> = self.queue.all().map(|run| run.key).collect();
        for key in keys {
            self.judge_before(key);
        }
        for submission in secrets {
            let is_open = self.queue.is_open(&submission);
            self.secrets.insert(submission.clone());
            if !is_open {
                self.drop_secrets(submission);
            }
        }
    }

    /// Sets the machine's limits, and stores them so that the next daemon has them before any
    /// client comes.
    pub(super) fn set_limits(&mut self, mut limits: Limits) {
        // An older client may have accepted a larger number.
        limits.gpus = limits.gpus.map(|gpus| gpus.min(MAX_LOCAL_GPUS));
        if self.machine.limits != limits {
            self.effect(Effect::KeepLimits(limits));
            self.machine = self.machine.limited(limits);
            self.gpus.forget();
            self.unsettled = true;
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
        state: RunState::default(),
        started: None,
        far: None,
    }
}
