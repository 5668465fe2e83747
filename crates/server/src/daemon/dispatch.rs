//! Starts the runs that the scheduler chose: first the intent in the history, then the assignment
//! to the runner.

use super::ledger::{Query, ReadThen};
use super::runners::Start;
use super::{Assign, Chosen, Daemon, Effect, Then};
use crate::schedule::{Capacity, Decision, Holding, Waiting, decide};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use towline_core::event::RunEvent;
use towline_core::obstacle::Obstacle;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::{Error, Result};
use towline_engine::history::RunKey;
use towline_wire::runner::Stop;

/// How long starts pause after one has failed.
const START_PAUSE: Duration = Duration::from_millis(900);

/// Why starts are paused.
#[derive(Debug)]
pub(super) struct PausedStarts {
    /// By the steady clock.
    pub(super) until: Duration,
    pub(super) why: String,
}

impl Daemon {
    pub(super) fn schedule(&mut self) {
        self.unsettled = false;
        if self.queue.waiting_count() == 0 || self.starts_are_paused() {
            return;
        }
        let known = self.gpus_are_known();
        // Those that wait for a runner to start are decided already.
        let starting: BTreeSet<RunKey> = self.runners.starting().map(|start| start.key).collect();
        let waiting = self.queue.waiting();
        let decision = self.decide_with(known, waiting.filter(|run| !starting.contains(&run.key)));
        for (key, gpus) in decision.start {
            match self.runners.take_idle() {
                Some(runner) => self.dispatch(key, gpus, runner),
                None => self.start_runner(Some(Start { key, gpus })),
            }
        }
        for key in decision.preempt {
            self.preempt(key);
        }
    }

    /// Pauses starts, because the last one failed. The next tick tries again.
    pub(super) fn pause_starts(&mut self, why: String) {
        if self
            .paused_starts
            .as_ref()
            .is_none_or(|paused| paused.why != why)
        {
            self.log(why.clone());
        }
        self.paused_starts = Some(PausedStarts {
            until: self.now.steady + START_PAUSE,
            why,
        });
    }

    pub(super) fn starts_are_paused(&self) -> bool {
        self.paused_starts
            .as_ref()
            .is_some_and(|paused| self.now.steady < paused.until)
    }

    /// The scheduler's decision for these runs, with the machine as it is now.
    pub(super) fn decide<'w>(&self, waiting: impl IntoIterator<Item = &'w Waiting>) -> Decision {
        self.decide_with(true, waiting)
    }

    fn decide_with<'w>(
        &self,
        gpus_are_known: bool,
        waiting: impl IntoIterator<Item = &'w Waiting>,
    ) -> Decision {
        let at = self.now.wall;
        let mut holding = self.queue.holding(at, self.settings.grace_millis);
        holding.extend(self.reserved.iter().cloned());
        holding.extend(
            self.runners
                .starting()
                .filter_map(|start| self.held_by(start)),
        );
        let gpus = if gpus_are_known {
            self.machine.usable_gpus()
        } else {
            BTreeSet::new()
        };
        let capacity = Capacity {
            cpus: self.machine.cpus,
            memory: self.machine.memory,
            gpus,
        };
        decide(&capacity, waiting, &holding, at.0.unsigned_abs())
    }

    /// The part of the machine that a run gets when its runner has started.
    fn held_by(&self, start: &Start) -> Option<Holding> {
        let run = self.run_of(start.key)?;
        Some(Holding {
            key: run.key,
            tier: run.tier,
            need: run.need,
            gpus: start.gpus.clone(),
            ends_at: None,
            leaving: false,
        })
    }

    pub(super) fn dispatch(&mut self, key: RunKey, gpus: BTreeSet<u32>, runner: String) {
        self.pass("daemon.dispatch.before");
        let Some(attempt) = self.run_of(key).map(|run| run.state.attempt + 1) else {
            return self.runners.put_back(&runner);
        };
        let intent = RunEvent::AttemptIntent {
            attempt,
            runner: runner.clone(),
            gpus: gpus.into_iter().collect(),
            durable: false,
        };
        let Some(event) = self.apply_now(key, intent) else {
            return self.runners.put_back(&runner);
        };
        self.runners.assign(&runner, key, attempt);
        if let Some(run) = self.queue.get_mut(key) {
            run.started = None;
        }
        self.queue.refile(key);
        let chosen = Chosen {
            key,
            attempt,
            runner,
        };
        self.record(vec![event], Then::Dispatch(chosen));
    }

    /// Goes on after the intent is in the history: a later daemon then knows which runner may have
    /// the attempt.
    pub(super) fn dispatch_written(&mut self, chosen: Chosen) {
        self.pass("daemon.dispatch.committed");
        let Some(run) = self.run_of(chosen.key) else {
            return;
        };
        let submission = run.submission.clone();
        match self.plans.get(&submission) {
            Some(plan) => {
                let plan = plan.clone();
                self.plan_read(&chosen, Ok(Some(plan)));
            }
            None => self
                .ledger
                .read(Query::Plan(submission), ReadThen::Dispatch(chosen)),
        }
    }

    /// Sends the assignment, unless the attempt has been given to another runner since. That runner
    /// gets an assignment of its own, and the attempt would run twice.
    pub(super) fn plan_read(&mut self, chosen: &Chosen, plan: Result<Option<Arc<Plan>>>) {
        if !self.is_still(chosen) {
            return;
        }
        let plan =
            plan.and_then(|plan| plan.ok_or_else(|| Error::bug("its plan is not in the history")));
        match plan {
            Ok(plan) => {
                self.keep_plan(plan.clone());
                if let Some(assign) = self.assignment(chosen, plan) {
                    self.runners
                        .sent(&chosen.runner, chosen.key, chosen.attempt);
                    self.effect(Effect::Assign(Box::new(assign)));
                    self.pass("daemon.dispatch.sent");
                    self.send_stop_if_wanted(chosen.key);
                }
            }
            Err(error) => self.not_assigned(chosen, &error),
        }
    }

    /// Whether the attempt is still with the runner that was chosen for it.
    fn is_still(&self, chosen: &Chosen) -> bool {
        self.run_of(chosen.key).is_some_and(|run| {
            run.state.attempt == chosen.attempt && run.state.runner.as_ref() == Some(&chosen.runner)
        })
    }

    /// Ends the attempt, because no assignment could be made for it.
    pub(super) fn not_assigned(&mut self, chosen: &Chosen, error: &Error) {
        if !self.is_still(chosen) {
            return;
        }
        self.runners.put_back(&chosen.runner);
        let ending = Ending::not_started(error.to_string(), Obstacle::of(error));
        self.attempt_over(chosen.key, chosen.attempt, ending, self.now.wall);
    }

    fn assignment(&self, chosen: &Chosen, mut plan: Arc<Plan>) -> Option<Assign> {
        let run = self.run_of(chosen.key)?;
        if let Some(edit) = &run.state.edited {
            edit.apply(&mut Arc::make_mut(&mut plan).resolved);
        }
        let shape = &plan.resolved.shape;
        Some(Assign {
            chosen: chosen.clone(),
            run: run.id.clone(),
            submission: run.submission.clone(),
            parameters: run.parameters.clone(),
            gpus: self.gpus_by_node(&run.state.gpus, shape.nodes, shape.gpus_per_node),
            gpu_make: self.machine.gpu_make(),
            intent_is_durable: run.state.claim_may_be_lost,
            plan,
        })
    }

    /// Divides GPUs among nodes. On a machine with GPUs, a run that asked for none sees none.
    fn gpus_by_node(&self, gpus: &[u32], nodes: u32, per_node: u32) -> Vec<Vec<u32>> {
        if self.machine.gpus.is_empty() {
            return Vec::new();
        }
        (0..nodes)
            .map(|node| {
                gpus.iter()
                    .copied()
                    .skip((node * per_node) as usize)
                    .take(per_node as usize)
                    .collect()
            })
            .collect()
    }

    fn preempt(&mut self, key: RunKey) {
        let Some(attempt) = self.run_of(key).map(|run| run.state.attempt) else {
            return;
        };
        let event = self.apply_now(key, RunEvent::PreemptIntent { attempt });
        self.record(event.into_iter().collect(), Then::Preempt { key });
    }

    pub(super) fn preempt_written(&mut self, key: RunKey) {
        self.pass("daemon.preempt.committed");
        self.send_stop_if_wanted(key);
        self.pass("daemon.preempt.sent");
    }

    /// Resumes runners that are stopped (SIGSTOP) although their run is to end, because a stopped
    /// runner does not handle its messages.
    pub(super) fn continue_stopped_runners(&mut self) {
        let leaving = self
            .queue
            .held_runs()
            .filter(|run| run.state.cancel_requested || run.state.preempt_requested);
        let runners: BTreeSet<String> =
            leaving.filter_map(|run| run.state.runner.clone()).collect();
        if !runners.is_empty() {
            self.effect(Effect::ContinueStopped { runners });
        }
    }

    /// Sends a stop if the history says that the user or a higher tier wants one. Harmless when
    /// repeated.
    pub(super) fn send_stop_if_wanted(&mut self, key: RunKey) {
        let Some(run) = self.run_of(key) else { return };
        let why = match (run.state.cancel_requested, run.state.preempt_requested) {
            (true, _) => Stop::ByUser,
            (false, true) => Stop::Preempted,
            (false, false) => return,
        };
        let Some(runner) = run.state.runner.clone() else {
            return;
        };
        let stop = Effect::StopAttempt {
            runner,
            run: run.id.clone(),
            attempt: run.state.attempt,
            why,
        };
        self.effect(stop);
    }
}
