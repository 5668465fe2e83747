//! The daemon's process: the shipped value, and a shell whose every effect is a step of its own.

use crate::history::no_room;
use crate::runner::{Runner, ToRunner};
use crate::tasks::Task;
use crate::worker::WorkerProcess;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use towline_core::event::RunEvent;
use towline_core::{Error, RunId};
use towline_server::daemon::{
    Assign, Daemon, Effect, Found, FoundRunner, Hardware, Input, Settings, Write,
};
use towline_wire::daemon::Limits;
use towline_wire::runner::FromRunner;

#[derive(Debug)]
pub(crate) struct DaemonProcess {
    /// How many daemons there were before it.
    pub(crate) number: u64,
    value: Daemon,
    began: Duration,
    effects: VecDeque<Effect>,
    answers: VecDeque<Input>,
    pub(crate) inbox: VecDeque<Input>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) connections: BTreeSet<u64>,
    /// The runners that it has a connection to.
    pub(crate) controls: BTreeSet<String>,
    pub(crate) workers: BTreeMap<String, WorkerProcess>,
    /// Nothing has happened since the last flush.
    is_flushed: bool,
}

impl DaemonProcess {
    /// Whether it has nothing to do by itself.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.effects.is_empty()
            && self.answers.is_empty()
            && self.inbox.is_empty()
            && self.is_flushed
    }
}

impl World {
    /// Starts a daemon, unless there is one. It does not start if it cannot read the journals.
    pub(crate) fn start_daemon(&mut self) {
        if self.daemon.is_some() || self.is_unreadable || self.has_no_processes {
            return;
        }
        self.daemons += 1;
        let settings = Settings {
            boot: format!("boot{}", self.boot),
            pid: u32::try_from(self.daemons).unwrap_or(0),
            host: "here".to_owned(),
            begun: self.wall(),
            grace_millis: 10_000,
            idle_time: Duration::from_secs(300),
        };
        let hardware = Hardware {
            cpus: 4,
            memory: 1 << 34,
            gpus: 2,
        };
        let limits = Limits {
            gpus: Some(2),
            ..Limits::default()
        };
        let value = Daemon::new(settings, hardware, limits, self.time_of(self.now));
        let found = Found {
            runs: self.history.active(),
            runners: self.found_runners(),
            secrets: self.secrets.iter().cloned().collect(),
            reserve: self.has_reserve,
        };
        self.note(|| "a daemon starts".to_owned());
        self.daemon = Some(DaemonProcess {
            number: self.daemons,
            value,
            began: self.now,
            effects: VecDeque::new(),
            answers: VecDeque::from([Input::Begin(Box::new(found)), Input::Ready]),
            inbox: VecDeque::new(),
            tasks: Vec::new(),
            connections: BTreeSet::new(),
            controls: BTreeSet::new(),
            workers: BTreeMap::new(),
            is_flushed: false,
        });
    }

    fn found_runners(&self) -> Vec<FoundRunner> {
        let there = self.journals.iter().filter(|(_, file)| !file.is_removed);
        there
            .map(|(name, journal)| FoundRunner {
                name: name.clone(),
                is_alive: self.holds_lock(name),
                records: journal.records.clone(),
            })
            .collect()
    }

    pub(crate) fn holds_lock(&self, runner: &str) -> bool {
        let runner = self.runners.iter().find(|other| other.name == runner);
        runner.is_some_and(Runner::holds_lock)
    }

    pub(crate) fn daemon_dies(&mut self) {
        let Some(daemon) = self.daemon.take() else {
            return;
        };
        for client in &mut self.clients {
            if client.connection.is_some_and(|(_, of)| of == daemon.number) {
                client.connection = None;
            }
        }
    }

    /// The daemon's next small step: an effect, the answer to a call, an input, or a flush.
    pub(crate) fn daemon_step(&mut self) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        if let Some(effect) = daemon.effects.pop_front() {
            return self.carry_out(effect);
        }
        let next = daemon
            .answers
            .pop_front()
            .or_else(|| daemon.inbox.pop_front());
        let input = match next {
            Some(input) => {
                daemon.is_flushed = false;
                input
            }
            None if !daemon.is_flushed => {
                daemon.is_flushed = true;
                Input::Flush
            }
            None => return,
        };
        if let Input::RunnerReached { name } = &input {
            daemon.controls.insert(name.clone());
        }
        if let Some(trace) = &mut self.trace {
            trace.push(format!("daemon <- {}", shortened(&input)));
        }
        let began = daemon.began;
        let now = self.time_of(began);
        if let Some(daemon) = &mut self.daemon {
            daemon.effects.extend(daemon.value.step(input, now));
        }
    }

    fn answer(&mut self, input: Input) {
        if let Some(daemon) = &mut self.daemon {
            daemon.answers.push_back(input);
        }
    }

    fn task(&mut self, task: Task) {
        if let Some(daemon) = &mut self.daemon {
            daemon.tasks.push(task);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        if !matches!(effect, Effect::Pass(_)) {
            self.note(|| format!("daemon -> {}", shortened(&effect)));
        }
        match effect {
            Effect::Reply {
                connection,
                reply,
                is_last,
            } => self.reply(connection, &reply, is_last),
            Effect::Commit {
                writes, durable, ..
            } => {
                let written = if self.disk_is_full {
                    no_room()
                } else {
                    for write in writes.iter().flat_map(|writes| writes.iter()) {
                        self.prepare(write);
                    }
                    let written = self.history.commit(&writes, durable);
                    self.check_ends(&writes);
                    Ok(written)
                };
                self.answer(Input::Committed(written));
            }
            Effect::Read(query) => {
                let answer = self.history.read(query);
                self.answer(Input::Answered(answer));
            }
            Effect::StartRunner { name } => self.start_runner(name),
            Effect::Assign(assign) => self.assign(&assign),
            Effect::StopAttempt {
                runner,
                run,
                attempt,
                why,
            } => self.send_to_runner(&runner, ToRunner::Stop { run, attempt, why }),
            Effect::Retire { runner } => self.send_to_runner(&runner, ToRunner::Retire),
            Effect::CallRunner { name } => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.controls.remove(&name);
                }
                self.task(Task::Call { runner: name });
            }
            Effect::ReadJournal {
                name,
                carrying,
                after,
            } => self.task(Task::ReadJournal {
                runner: name,
                carrying,
                due: self.now + after,
            }),
            Effect::RemoveJournals { runners } => self.remove_journals(&runners),
            Effect::EndOrphans(orphans) => self.task(Task::EndOrphans(orphans)),
            Effect::DropSecrets { submission } => {
                self.secrets.remove(&submission);
            }
            Effect::LookAtGpus(_) => self.task(Task::LookAtGpus),
            Effect::KeepReserve => {
                self.has_reserve |= !self.disk_is_full;
                self.answer(Input::ReserveKept(self.has_reserve));
            }
            Effect::ReleaseReserve => self.has_reserve = false,
            Effect::Order { cluster, order } => self.order(&cluster, order),
            Effect::Leave => self.daemon_dies(),
            Effect::RemoveGroup { .. }
            | Effect::ReleaseMounts { .. }
            | Effect::ContinueStopped { .. }
            | Effect::KeepLimits(_)
            | Effect::Tunnel { .. }
            | Effect::Workspaces { .. }
            | Effect::Log(_)
            | Effect::Pass(_) => {}
        }
    }

    /// The secrets of a submission are on disk before it is.
    fn prepare(&mut self, write: &Write) {
        if let Write::Submit(submission) = write
            && !submission.secrets.is_empty()
        {
            self.secrets.insert(submission.plan.id.clone());
        }
    }

    /// A far run has not ended while its job goes on.
    fn check_ends(&mut self, writes: &[Arc<[Write]>]) {
        for write in writes.iter().flat_map(|writes| writes.iter()) {
            let Write::Event(of) = write else { continue };
            if !matches!(of.event, RunEvent::Ended { .. }) {
                continue;
            }
            let Some(run) = self.history.id_of(of.key) else {
                continue;
            };
            let jobs = self
                .clusters
                .iter()
                .filter_map(|cluster| cluster.jobs.get(run));
            if jobs.into_iter().any(|job| !job.is_over) {
                let what = format!("{run} is said to have ended while its job goes on");
                self.facts.break_promise(what);
            }
        }
    }

    fn start_runner(&mut self, name: String) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        if self.has_no_processes || self.disk_is_full {
            let why = "no process".to_owned();
            return daemon
                .answers
                .push_back(Input::RunnerNotStarted { name, why });
        }
        self.journals.entry(name.clone()).or_default();
        self.runners.push(Runner::new(name.clone(), daemon.number));
        daemon.controls.insert(name.clone());
        daemon.inbox.push_back(Input::Runner {
            name: name.clone(),
            message: FromRunner::Hello {
                runner: name.clone(),
                carrying: None,
            },
        });
        daemon.answers.push_back(Input::RunnerStarted { name });
    }

    fn assign(&mut self, assign: &Assign) {
        if self.is_unreadable && self.secrets.contains(&assign.submission) {
            let error = Error::refused("the secrets cannot be read");
            let chosen = assign.chosen.clone();
            return self.answer(Input::NotAssigned { chosen, error });
        }
        if self.had_secrets(&assign.submission) && !self.secrets.contains(&assign.submission) {
            self.facts
                .break_promise(format!("{} starts without its secrets", assign.run));
        }
        let start = ToRunner::Start {
            run: assign.run.clone(),
            attempt: assign.chosen.attempt,
            gpus: assign.gpus.concat(),
            intent_is_durable: assign.intent_is_durable,
        };
        self.send_to_runner(&assign.chosen.runner, start);
    }

    /// Whether a submission came with secrets.
    pub(crate) fn had_secrets(&self, submission: &RunId) -> bool {
        self.clients.iter().any(|client| match &client.want {
            crate::client::Want::Submit { job, number, .. } => {
                job.has_secrets && self.plans.submit(*job, *number, &[]).plan.id == *submission
            }
            _ => false,
        })
    }

    /// Sends a message, if there is a connection.
    fn send_to_runner(&mut self, name: &str, message: ToRunner) {
        let Some(daemon) = &self.daemon else {
            return;
        };
        let number = daemon.number;
        if !daemon.controls.contains(name) {
            return;
        }
        let runner = self.runners.iter_mut().find(|runner| {
            runner.name == name && runner.is_alive && runner.control == Some(number)
        });
        if let Some(runner) = runner {
            runner.inbox.push_back(message);
        }
    }

    fn remove_journals(&mut self, runners: &[String]) {
        for runner in runners {
            if let Some(journal) = self.journals.get_mut(runner) {
                journal.is_removed = true;
            }
        }
    }
}

/// The beginning of what a value looks like.
pub(crate) fn shortened(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take(300).collect()
}
