//! Starts the runs that the scheduler chose: first the intent in the history, then the assignment
//! to the runner.

use super::{Chosen, Daemon, Message, Then, log, now};
use crate::schedule::{Capacity, Decision, Waiting, decide};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use towline_core::cluster::GpuMake;
use towline_core::event::RunEvent;
use towline_core::obstacle::Obstacle;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::{Error, Result};
use towline_engine::history::RunKey;
use towline_host::{crash, process};
use towline_runner::assemble::{self, AttemptFolders, Given, Wanted};
use towline_wire::runner::{Assignment, Stop, ToRunner};

/// How long starts pause after one has failed.
const START_PAUSE: Duration = Duration::from_millis(900);

/// Why starts are paused.
pub(super) struct PausedStarts {
    pub(super) until: Instant,
    pub(super) why: String,
}

impl Daemon {
    pub(super) fn schedule(&mut self) {
        self.unsettled = false;
        if self.queue.waiting_count() == 0 || self.starts_are_paused() {
            return;
        }
        let known = self.gpus_are_known();
        let decision = self.decide_with(known, self.queue.waiting());
        for (key, gpus) in decision.start {
            self.dispatch(key, gpus);
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
            log(&why);
        }
        self.paused_starts = Some(PausedStarts {
            until: Instant::now() + START_PAUSE,
            why,
        });
    }

    pub(super) fn starts_are_paused(&self) -> bool {
        self.paused_starts
            .as_ref()
            .is_some_and(|paused| Instant::now() < paused.until)
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
        let at = now();
        let mut holding = self.queue.holding(at, self.grace_millis);
        holding.extend(self.reserved.iter().cloned());
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

    fn dispatch(&mut self, key: RunKey, gpus: BTreeSet<u32>) {
        crash::pass("daemon.dispatch.before");
        let Some(attempt) = self.run_of(key).map(|run| run.state.attempt + 1) else {
            return;
        };
        let runner = match self.runners.take_idle() {
            Ok(runner) => runner,
            Err(error) => return self.pause_starts(format!("no runner can be started: {error}")),
        };
        let Some(event) = self.apply(
            key,
            RunEvent::AttemptIntent {
                attempt,
                runner: runner.clone(),
                gpus: gpus.into_iter().collect(),
                durable: false,
            },
            now(),
        ) else {
            return self.runners.put_back(&runner);
        };
        self.runners.assign(&runner, key, attempt);
        if let Some(run) = self.queue.get_mut(key) {
            run.started = None;
        }
        self.queue.refile(key);
        self.record(
            vec![event],
            Then::Dispatch(Chosen {
                key,
                attempt,
                runner,
            }),
        );
    }

    /// Goes on after the intent is in the history: a later daemon then knows which runner may have
    /// the attempt.
    pub(super) fn dispatch_written(&mut self, chosen: Chosen) {
        crash::pass("daemon.dispatch.committed");
        let Some(run) = self.run_of(chosen.key) else {
            return;
        };
        let submission = run.submission.clone();
        match self.plans.get(&submission) {
            Some(plan) => self.plan_read(&chosen, Ok(Some(plan.clone()))),
            None => self.ledger.read(move |history| {
                let plan = history
                    .submission(&submission)
                    .map(|found| found.map(|submission| Arc::new(submission.plan)));
                Message::PlanRead { chosen, plan }
            }),
        }
    }

    /// Sends the assignment, unless the attempt has been given to another runner since. That runner
    /// gets an assignment of its own, and the attempt would run twice.
    pub(super) fn plan_read(&mut self, chosen: &Chosen, plan: Result<Option<Arc<Plan>>>) {
        let Chosen {
            key,
            attempt,
            runner,
        } = chosen;
        let (key, attempt) = (*key, *attempt);
        if !self.run_of(key).is_some_and(|run| {
            run.state.attempt == attempt && run.state.runner.as_ref() == Some(runner)
        }) {
            return;
        }
        let assignment = plan
            .and_then(|plan| plan.ok_or_else(|| Error::bug("its plan is not in the history")))
            .and_then(|plan| {
                let assignment = self.assignment(key, &plan)?;
                self.keep_plan(plan);
                Ok(assignment)
            });
        match assignment {
            Ok(assignment) => {
                self.runners
                    .send(runner, ToRunner::Start(Box::new(assignment)));
                crash::pass("daemon.dispatch.sent");
                self.send_stop_if_wanted(key);
            }
            Err(error) => {
                self.runners.put_back(runner);
                self.attempt_over(
                    key,
                    attempt,
                    Ending::not_started(error.to_string(), Obstacle::of(&error)),
                    now(),
                );
            }
        }
    }

    fn assignment(&self, key: RunKey, plan: &Plan) -> Result<Assignment> {
        let run = self
            .run_of(key)
            .ok_or_else(|| Error::bug("the run is gone"))?;
        let resolved = &plan.resolved;
        let folders = AttemptFolders {
            run: self.state.run(&run.id),
            snapshots: self.state.snapshots(),
            mounts: self.state.run(&run.id).join("io"),
            copies: self.state.copies(),
            transfers: self.state.transfers(),
        };
        assemble::assignment(Wanted {
            run: &run.id,
            attempt: run.state.attempt,
            parameters: &run.parameters,
            resolved,
            secrets: &self.secrets(&run.submission)?,
            folders: &folders,
            gpus: self.gpus_by_node(
                &run.state.gpus,
                resolved.shape.nodes,
                resolved.shape.gpus_per_node,
            ),
            gpu_make: self.gpu_make(),
            grace_millis: self.grace_millis,
            collect_every: self.collect_seconds,
            intent_is_durable: run.state.claim_may_be_lost,
            given: Given::default(),
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

    fn gpu_make(&self) -> GpuMake {
        self.machine.gpu_make()
    }

    fn preempt(&mut self, key: RunKey) {
        let Some(attempt) = self.run_of(key).map(|run| run.state.attempt) else {
            return;
        };
        let event = self.apply(key, RunEvent::PreemptIntent { attempt }, now());
        self.record(event.into_iter().collect(), Then::Preempt { key });
    }

    pub(super) fn preempt_written(&mut self, key: RunKey) {
        crash::pass("daemon.preempt.committed");
        self.send_stop_if_wanted(key);
        crash::pass("daemon.preempt.sent");
    }

    /// Resumes runners that are stopped (SIGSTOP) although their run is to end, because a stopped
    /// runner does not handle its messages.
    pub(super) fn continue_stopped_runners(&self) {
        let leaving = self
            .queue
            .held_runs()
            .filter(|run| run.state.cancel_requested || run.state.preempt_requested);
        let names: BTreeSet<&str> = leaving
            .filter_map(|run| run.state.runner.as_deref())
            .collect();
        if names.is_empty() {
            return;
        }
        for (pid, _) in process::all()
            .into_iter()
            .filter(|(_, facts)| facts.stopped)
        {
            if let Some(name) = process::words(pid)
                .iter()
                .find(|word| names.contains(word.as_str()))
            {
                log(&format!(
                    "runner {name} is stopped (SIGSTOP) although its run is to end: it gets SIGCONT"
                ));
                process::signal(pid, rustix::process::Signal::CONT);
            }
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
        let stop = ToRunner::Stop {
            run: run.id.clone(),
            attempt: run.state.attempt,
            why,
        };
        self.runners.send(&runner, stop);
    }
}
