//! The steps of runners and guards.

use crate::facts::Alive;
use crate::runner::{Attempt, Stage, ToRunner};
use crate::world::World;
use towline_core::reason::{Cause, Ending};
use towline_server::daemon::Input;
use towline_wire::journal::JournalRecord;
use towline_wire::runner::{FromRunner, Stop};

impl World {
    /// The next step of a runner, or of the guard of a dead one.
    pub(crate) fn runner_step(&mut self, which: usize) {
        if self.runners.is_empty() {
            return;
        }
        let which = which % self.runners.len();
        if !self.runners[which].is_alive {
            return self.guard_step(which);
        }
        let Some(attempt) = self.runners[which].attempt.clone() else {
            return self.idle_step(which);
        };
        match attempt.stage.clone() {
            Stage::Claimed => self.start_ranks(which, &attempt),
            Stage::Running => self.hear(which),
            Stage::Stopping(why) => {
                self.facts.end_ranks(&attempt.run);
                let cause = match why {
                    Stop::ByUser => Cause::ByUser,
                    Stop::Preempted => Cause::Preempted,
                };
                self.set_stage(which, Stage::Ended(Ending::cause(cause)));
            }
            Stage::Ended(ending) => {
                if !self.disk_is_full {
                    self.write_end(which, &attempt, ending.clone());
                    self.set_stage(which, Stage::Written(ending));
                }
            }
            Stage::Written(ending) => self.tell_end(which, attempt, ending),
        }
    }

    fn set_stage(&mut self, which: usize, stage: Stage) {
        if let Some(attempt) = &mut self.runners[which].attempt {
            attempt.stage = stage;
        }
    }

    fn start_ranks(&mut self, which: usize, attempt: &Attempt) {
        let runner = self.runners[which].name.clone();
        self.note(|| format!("{runner}: {} {} begins", attempt.run, attempt.attempt));
        self.facts.begin(Alive {
            run: attempt.run.clone(),
            attempt: attempt.attempt,
            runner: runner.clone(),
            gpus: attempt.gpus.clone(),
        });
        self.facts.check_begin(&attempt.run, &self.history);
        let at = self.wall();
        let (run, number) = (attempt.run.clone(), attempt.attempt);
        let record = JournalRecord::Started {
            run: run.clone(),
            attempt: number,
            at,
            processes: vec![(1, 1)],
        };
        // Not needed after a power cut, and it may not fit on the disk.
        if !self.disk_is_full {
            self.append(&runner, record, false);
        }
        self.set_stage(which, Stage::Running);
        self.send(
            which,
            FromRunner::Started {
                run,
                attempt: number,
                at,
            },
        );
    }

    fn write_end(&mut self, which: usize, attempt: &Attempt, ending: Ending) {
        let runner = self.runners[which].name.clone();
        let end = JournalRecord::End {
            run: attempt.run.clone(),
            attempt: attempt.attempt,
            at: self.wall(),
            ending: ending.clone(),
        };
        self.append(&runner, end, true);
        let of = (attempt.run.clone(), attempt.attempt);
        self.facts.endings.insert(of, ending);
    }

    fn tell_end(&mut self, which: usize, attempt: Attempt, ending: Ending) {
        let message = FromRunner::Ended {
            run: attempt.run,
            attempt: attempt.attempt,
            at: self.wall(),
            ending,
        };
        self.send(which, message);
        self.runners[which].attempt = None;
        if !self.is_connected(which) {
            self.start_daemon();
        }
    }

    /// Whether the daemon at the other end of the runner's socket is alive.
    fn is_connected(&self, which: usize) -> bool {
        let Some(number) = self.runners[which].control else {
            return false;
        };
        let daemon = self.daemon.as_ref();
        daemon.is_some_and(|daemon| daemon.number == number)
    }

    fn send(&mut self, which: usize, message: FromRunner) {
        if self.is_connected(which) {
            let name = self.runners[which].name.clone();
            self.tell_daemon(Input::Runner { name, message });
        }
    }

    fn append(&mut self, runner: &str, record: JournalRecord, sync: bool) {
        if let Some(journal) = self.journals.get_mut(runner) {
            journal.append(record, sync);
        }
    }

    /// A runner without an attempt reads its messages. It exits if it is told to, or alone.
    fn idle_step(&mut self, which: usize) {
        self.hear(which);
        let is_alone = !self.is_connected(which) && self.runners[which].inbox.is_empty();
        let runner = &mut self.runners[which];
        if runner.attempt.is_none() && (runner.is_retiring || is_alone) {
            (runner.is_alive, runner.has_guard) = (false, false);
            let (name, control) = (runner.name.clone(), runner.control.take());
            self.connection_ends(&name, control);
        }
    }

    /// The daemon notices that the connection to a runner has ended.
    fn connection_ends(&mut self, name: &str, control: Option<u64>) {
        let daemon = self.daemon.as_mut();
        if let Some(daemon) = daemon.filter(|daemon| Some(daemon.number) == control) {
            let name = name.to_owned();
            daemon.inbox.push_back(Input::RunnerGone { name });
        }
    }

    fn hear(&mut self, which: usize) {
        let Some(message) = self.runners[which].inbox.pop_front() else {
            return;
        };
        match message {
            ToRunner::Start {
                run,
                attempt,
                gpus,
                intent_is_durable,
            } => {
                let key = (run.clone(), attempt);
                let runner = &mut self.runners[which];
                if runner.attempt.is_some() || runner.begun.contains(&key) {
                    // This daemon is not to be trusted any more.
                    let (name, control) = (runner.name.clone(), runner.control.take());
                    runner.inbox.clear();
                    return self.connection_ends(&name, control);
                }
                if self.disk_is_full {
                    let why = "no room".to_owned();
                    return self.send(which, FromRunner::Unclaimed { run, attempt, why });
                }
                runner.begun.insert(key);
                let name = runner.name.clone();
                let at = self.wall();
                let claim = JournalRecord::Claim {
                    run: run.clone(),
                    attempt,
                    at,
                    gpus: gpus.clone(),
                };
                self.append(&name, claim, !intent_is_durable);
                self.runners[which].attempt = Some(Attempt {
                    run,
                    attempt,
                    gpus,
                    stage: Stage::Claimed,
                });
            }
            ToRunner::Stop { run, attempt, why } => {
                let current = self.runners[which].attempt.as_ref();
                let is_its = current.is_some_and(|of| of.run == run && of.attempt == attempt);
                if is_its {
                    self.set_stage(which, Stage::Stopping(why));
                }
            }
            ToRunner::Retire => self.runners[which].is_retiring = true,
        }
    }

    /// The guard of a dead runner kills its ranks, writes the end, and exits.
    fn guard_step(&mut self, which: usize) {
        if !self.runners[which].has_guard {
            return;
        }
        let Some(attempt) = self.runners[which].attempt.clone() else {
            self.runners[which].has_guard = false;
            return;
        };
        self.facts.end_ranks(&attempt.run);
        let is_written = matches!(attempt.stage, Stage::Written(_));
        if !is_written {
            if self.disk_is_full {
                return;
            }
            self.write_end(which, &attempt, Ending::cause(Cause::NodeFailed));
        }
        self.runners[which].attempt = None;
    }

    pub(crate) fn kill_runner(&mut self, which: usize, with_guard: bool) {
        let count = self.runners.len().max(1);
        let Some(runner) = self.runners.get_mut(which % count) else {
            return;
        };
        if with_guard {
            runner.has_guard = false;
        }
        if !std::mem::take(&mut runner.is_alive) {
            return;
        }
        runner.inbox.clear();
        let (name, control) = (runner.name.clone(), runner.control.take());
        self.connection_ends(&name, control);
    }

    /// The connection between the daemon and a runner breaks.
    pub(crate) fn cut_runner(&mut self, which: usize) {
        let count = self.runners.len().max(1);
        let Some(runner) = self.runners.get_mut(which % count) else {
            return;
        };
        let (name, control) = (runner.name.clone(), runner.control.take());
        self.connection_ends(&name, control);
    }
}
