//! What runners say, and what follows an ended attempt.

use super::{Announced, Daemon, Then, now};
use towline_core::RunId;
use towline_core::event::RunEvent;
use towline_core::reason::{Cause, Ending};
use towline_core::retry::{Next, after};
use towline_core::state::cancelled;
use towline_core::time::Moment;
use towline_engine::history::RunKey;
use towline_host::crash;
use towline_wire::runner::FromRunner;

impl Daemon {
    pub(super) fn runner_said(&mut self, name: &str, message: FromRunner) {
        match message {
            FromRunner::Hello { carrying, .. } => self.runner_hello(name, carrying),
            FromRunner::Unclaimed { run, attempt, why } => {
                self.runners.finished(name);
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
                crash::pass("daemon.started.received");
                self.paused_starts = None;
                if let Some(key) = self.queue.key(&run) {
                    self.attempt_started(key, attempt, at);
                }
                // Only now: before, it would have taken time from the run that was to start.
                self.runners.keep_one_waiting();
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
                let event = self.apply(
                    key,
                    RunEvent::AttemptHeld {
                        attempt,
                        until,
                        ending,
                    },
                    now(),
                );
                self.record(event.into_iter().collect(), Then::Nothing);
            }
            FromRunner::Ended {
                run,
                attempt,
                at,
                ending,
            } => {
                crash::pass("daemon.ended.received");
                self.runners.finished(name);
                if let Some(key) = self.queue.key(&run) {
                    self.attempt_over(key, attempt, ending, at);
                }
            }
        }
    }

    pub(super) fn attempt_started(&mut self, key: RunKey, attempt: u32, at: Moment) {
        let event = self.apply(key, RunEvent::AttemptStarted { attempt }, at);
        if let Some(run) = self.queue.get_mut(key).filter(|_| event.is_some()) {
            run.started = Some(at);
        }
        self.record(event.into_iter().collect(), Then::Nothing);
    }

    /// An attempt has ended and nothing of it is alive: the run ends, or goes back to the queue.
    pub(super) fn attempt_over(&mut self, key: RunKey, attempt: u32, ending: Ending, at: Moment) {
        let Some(run) = self.run_of(key) else { return };
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
            // Whoever asked for the end gets it, even if a preemption was quicker.
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

    /// Writes what an ended attempt led to. A run that is over is let go of here; its submission's
    /// secrets go with the last of its runs, and only once its end is in the history: a daemon that
    /// comes after us may still need them.
    pub(super) fn record_end(&mut self, key: RunKey, event: Announced) {
        let over = event.state.phase.is_ended();
        let last_of = if over { self.close(key) } else { None };
        self.record(
            vec![event],
            last_of.map_or(Then::Nothing, |submission| Then::DropSecrets { submission }),
        );
    }

    /// Lets go of an ended run. Gives its submission, if no other run of it is open.
    pub(super) fn close(&mut self, key: RunKey) -> Option<RunId> {
        let (run, last) = self.queue.remove(key)?;
        last.then_some(run.submission)
    }
}
