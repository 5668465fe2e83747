//! Handles messages of runners, and decides what follows an ended attempt.

use super::queue::Run;
use super::{Announced, Daemon, Then};
use towline_core::RunId;
use towline_core::event::RunEvent;
use towline_core::reason::{Cause, Ending};
use towline_core::retry::{Next, after};
use towline_core::state::cancelled;
use towline_core::time::Moment;
use towline_engine::history::RunKey;
use towline_wire::runner::FromRunner;

impl Daemon {
    pub(super) fn runner_said(&mut self, name: &str, message: FromRunner) {
        match message {
            FromRunner::Hello { carrying, .. } => self.runner_hello(name, carrying),
            FromRunner::Unclaimed { run, attempt, why } => {
                self.runner_finished(name);
                self.pause_starts(why);
                let is_its = |key: &RunKey| {
                    self.run_of(*key)
                        .is_some_and(|run| run.state.runner.as_deref() == Some(name))
                };
                if let Some(key) = self.queue.key(&run).filter(is_its) {
                    self.attempt_unclaimed(key, attempt);
                }
            }
            FromRunner::Started { run, attempt, at } => {
                self.pass("daemon.started.received");
                self.paused_starts = None;
                if let Some(key) = self.queue.key(&run) {
                    self.attempt_started(key, attempt, at);
                }
                // Not earlier, because starting a runner would delay the run that was about to
                // start.
                self.keep_one_waiting();
            }
            FromRunner::Held {
                run,
                attempt,
                until,
                ending,
            } => {
                let Some(key) = self.queue.key(&run) else {
                    return;
                };
                self.attempt_held(key, attempt, until, ending);
            }
            FromRunner::Ended {
                run,
                attempt,
                at,
                ending,
            } => {
                self.pass("daemon.ended.received");
                self.runner_finished(name);
                if let Some(key) = self.queue.key(&run) {
                    self.attempt_over(key, attempt, ending, at);
                }
            }
        }
    }

    pub(super) fn attempt_held(
        &mut self,
        key: RunKey,
        attempt: u32,
        until: Moment,
        ending: Ending,
    ) {
        let held = RunEvent::AttemptHeld {
            attempt,
            until,
            ending,
        };
        let event = self.apply_now(key, held);
        self.record(event.into_iter().collect(), Then::Nothing);
    }

    pub(super) fn attempt_started(&mut self, key: RunKey, attempt: u32, at: Moment) {
        let event = self.apply(key, RunEvent::AttemptStarted { attempt }, at);
        if let Some(run) = self.queue.get_mut(key).filter(|_| event.is_some()) {
            run.started = Some(at);
        }
        self.record(event.into_iter().collect(), Then::Nothing);
    }

    /// Ends the run or returns it to the queue, after an attempt has ended and none of its
    /// processes is alive.
    pub(super) fn attempt_over(&mut self, key: RunKey, attempt: u32, ending: Ending, at: Moment) {
        // Another attempt may have followed already: a journal tells of all that its runner carried.
        let is_current = |run: &&Run| run.state.attempt == attempt && run.state.runner.is_some();
        let Some(run) = self.run_of(key).filter(is_current) else {
            return;
        };
        let next = after(
            run.retry.as_deref(),
            &ending,
            run.state.counted_starts,
            run.state.cancel_requested,
        );
        let event = match next {
            Next::Requeue { counted } => RunEvent::AttemptEnded {
                attempt,
                ending,
                counted,
            },
            // A cancel by the user wins, even if a preemption came first.
            Next::End if run.state.cancel_requested && ending.cause == Some(Cause::Preempted) => {
                RunEvent::Ended {
                    attempt,
                    ending: cancelled(),
                }
            }
            Next::End => RunEvent::Ended { attempt, ending },
        };
        let Some(event) = self.apply(key, event, at) else {
            return;
        };
        if let Some(run) = self.queue.get_mut(key) {
            run.started = None;
        }
        self.queue.refile(key);
        self.unsettled = true;
        self.record_end(key, event);
    }

    /// Records the outcome of an ended attempt. A run that is over is closed here. The secrets of
    /// its submission are removed with its last run, and only after the end is in the history,
    /// because a later daemon may still need them.
    pub(super) fn record_end(&mut self, key: RunKey, event: Announced) {
        let over = event.state.phase.is_ended();
        let last_of = if over { self.close(key) } else { None };
        let then = self.after_last(last_of);
        self.record(vec![event], then);
        self.judge_dependents();
    }

    /// Closes an ended run. Returns its submission if none of its other runs is open.
    pub(super) fn close(&mut self, key: RunKey) -> Option<RunId> {
        let (run, last) = self.queue.remove(key)?;
        self.no_longer_open(&run.id);
        if last {
            self.no_longer_open(&run.submission);
        }
        last.then_some(run.submission)
    }
}
