//! A job's path through its states, on a thread of its own.

use super::document::Job;
use super::ids::Scope;
use super::run::{Attempt, End};
use super::world::World;
use super::{images, logs, run};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct Life {
    pub world: Arc<World>,
    pub scope: Scope,
    pub name: String,
}

/// The interval between two checks for changes.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) fn begin(world: &Arc<World>, scope: &Scope, name: &str) {
    let life = Life {
        world: Arc::clone(world),
        scope: scope.clone(),
        name: name.to_owned(),
    };
    world.keep(std::thread::spawn(move || life.live()));
}

impl Life {
    fn live(&self) {
        let early = ["Starting", "Provisioning", "Preparing"]
            .into_iter()
            .all(|state| self.enter(state));
        if !early {
            return self.finish("Canceled", None);
        }
        let end = self.attempts();
        // A cancelled job has its final state already, and nothing of it is left.
        if !matches!(end, End::Cancelled) {
            self.turn("Finalizing");
            self.wait("Finalizing", |_| false);
        }
        match end {
            End::Succeeded => self.finish("Completed", None),
            End::Failed(error) => self.finish("Failed", Some(error)),
            End::Cancelled => self.finish("Canceled", None),
            End::TimedOut => self.finish(
                "Canceled",
                Some(user_error(
                    "The job reached its time limit and was canceled.",
                )),
            ),
            End::Preempted | End::Gone => {}
        }
    }

    /// Runs the job until it ends or is cancelled. Nodes that are preempted are replaced by others.
    fn attempts(&self) -> End {
        let mut number = 0;
        loop {
            if !self.enter("Queued") {
                return End::Cancelled;
            }
            let broken = self.world.conditions().broken_start.clone();
            if let Some(message) = broken {
                return End::Failed(user_error(&message));
            }
            let prepared = images::check(self).and_then(|()| Attempt::prepare(self, number));
            let mut attempt = match prepared {
                Ok(attempt) => attempt,
                Err(message) => return End::Failed(user_error(&message)),
            };
            self.turn("Running");
            let end = run::run(self, &mut attempt);
            self.job(|job| job.groups.clear());
            if !matches!(end, End::Preempted) {
                return end;
            }
            number += 1;
        }
    }

    /// Enters a state and waits for its pause; false if the job is cancelled meanwhile.
    fn enter(&self, state: &str) -> bool {
        if self.is_cancelled() {
            return false;
        }
        self.turn(state);
        self.wait(state, |job| job.cancelled)
    }

    /// Waits for a state's pause, and for as long as jobs are held in it.
    fn wait(&self, state: &str, is_over: impl Fn(&Job) -> bool) -> bool {
        let begun = Instant::now();
        loop {
            if self.world.ended() || self.job(|job| is_over(job)).unwrap_or(true) {
                return false;
            }
            let (pause, held) = {
                let conditions = self.world.conditions();
                (
                    conditions.pause,
                    conditions.hold_in.as_deref() == Some(state),
                )
            };
            if !held && begun.elapsed() >= pause {
                return true;
            }
            std::thread::sleep(POLL_INTERVAL.min(pause));
        }
    }

    fn finish(&self, state: &str, error: Option<Value>) {
        if self.world.ended() {
            return;
        }
        // The last lines of the log are stored before the final state.
        let last = self
            .job(|job| [job.states.as_slice(), &[state.to_owned()]].concat())
            .unwrap_or_default();
        let message = error
            .as_ref()
            .and_then(|error| error["error"]["message"].as_str());
        logs::write_system(&self.world, &self.name, &last, message);
        self.job(|job| {
            job.error = error;
            job.turn(state);
        });
    }

    pub(super) fn job<T>(&self, act: impl FnOnce(&mut Job) -> T) -> Option<T> {
        self.world.job_of(&self.scope, &self.name, act)
    }
    pub(super) fn turn(&self, state: &str) {
        self.job(|job| job.turn(state));
    }
    /// Whether it is cancelled, also by the end of the emulator.
    pub(super) fn is_cancelled(&self) -> bool {
        self.world.ended() || self.job(|job| job.cancelled).unwrap_or(true)
    }
}

pub(super) fn user_error(message: &str) -> Value {
    json!({"error": {"code": "UserError", "message": message, "messageParameters": {}, "details": []}})
}
