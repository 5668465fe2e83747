//! What the daemon started in the background.

use crate::world::World;
use std::time::Duration;
use towline_core::RunId;
use towline_core::cluster::GpuFacts;
use towline_server::daemon::{Input, Orphans};
use towline_wire::runner::FromRunner;

#[derive(Debug)]
pub(crate) enum Task {
    /// Connects to a runner until it is reached or dead.
    Call {
        runner: String,
    },
    ReadJournal {
        runner: String,
        carrying: Option<(RunId, u32)>,
        due: Duration,
    },
    EndOrphans(Box<Orphans>),
    LookAtGpus,
}

impl World {
    /// Finishes a task, unless it has to wait.
    pub(crate) fn finish_task(&mut self, which: usize) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        if daemon.tasks.is_empty() {
            return;
        }
        let which = which % daemon.tasks.len();
        let task = daemon.tasks.remove(which);
        let again = match task {
            Task::Call { runner } => self.call_runner(runner),
            Task::ReadJournal {
                runner,
                carrying,
                due,
            } if due <= self.now => {
                self.read_journal(runner, carrying);
                None
            }
            Task::EndOrphans(orphans) => {
                self.facts.end_ranks(&orphans.run);
                self.tell_daemon(Input::OrphansEnded {
                    key: orphans.key,
                    attempt: orphans.attempt,
                });
                None
            }
            Task::LookAtGpus => {
                let gpu = |index| GpuFacts {
                    index,
                    ..GpuFacts::default()
                };
                self.tell_daemon(Input::GpusSeen(vec![gpu(0), gpu(1)]));
                None
            }
            waiting @ Task::ReadJournal { .. } => Some(waiting),
        };
        if let (Some(task), Some(daemon)) = (again, &mut self.daemon) {
            daemon.tasks.push(task);
        }
    }

    pub(crate) fn tell_daemon(&mut self, input: Input) {
        if let Some(daemon) = &mut self.daemon {
            daemon.inbox.push_back(input);
        }
    }

    fn call_runner(&mut self, name: String) -> Option<Task> {
        let Some(daemon) = &mut self.daemon else {
            return None;
        };
        let number = daemon.number;
        let runner = self.runners.iter_mut().find(|runner| runner.name == name);
        match runner {
            Some(runner) if runner.is_alive => {
                // The new connection replaces the old one, with what was unread on it.
                runner.control = Some(number);
                runner.inbox.clear();
                let carrying = runner.carrying();
                let hello = FromRunner::Hello {
                    runner: name.clone(),
                    carrying,
                };
                daemon
                    .inbox
                    .push_back(Input::RunnerReached { name: name.clone() });
                daemon.inbox.push_back(Input::Runner {
                    name,
                    message: hello,
                });
                None
            }
            Some(runner) if runner.has_guard => Some(Task::Call { runner: name }),
            _ if self.is_unreadable => Some(Task::Call { runner: name }),
            _ => {
                let records = self.records(&name);
                self.tell_daemon(Input::Settled { name, records });
                None
            }
        }
    }

    fn read_journal(&mut self, name: String, carrying: Option<(RunId, u32)>) {
        let records = if self.is_unreadable {
            Err("it cannot be read".to_owned())
        } else {
            Ok(self.records(&name))
        };
        self.tell_daemon(Input::JournalRead {
            name,
            carrying,
            records,
        });
    }

    fn records(&self, runner: &str) -> Vec<towline_wire::journal::JournalRecord> {
        let journal = self.journals.get(runner).filter(|file| !file.is_removed);
        journal.map(|file| file.records.clone()).unwrap_or_default()
    }
}
