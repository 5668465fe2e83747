//! Carries out the effects of the daemon.

use super::{Message, Shell, gpus, log, orphans};
use crate::daemon::{Assign, Effect, Input};
use std::collections::BTreeSet;
use std::time::Duration;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result, RunId};
use towline_host::once::replace;
use towline_host::{crash, process};
use towline_runner::assemble::{self, AttemptFolders, Given, Wanted};
use towline_runner::journal;
use towline_wire::daemon::{Limits, Reply};
use towline_wire::runner::{Assignment, ToRunner};

/// How long replies have to be sent before the daemon exits.
const LAST_REPLY_PAUSE: Duration = Duration::from_millis(5);

impl Shell {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Reply {
                connection,
                reply,
                is_last,
            } => self.reply(connection, *reply, is_last),
            Effect::Commit {
                writes,
                durable,
                after_failure,
            } => {
                let result = self.commit(&writes, durable, after_failure);
                self.answers.push_back(Input::Committed(result));
            }
            Effect::Read(query) => {
                let answer = super::history::read(&self.history, query);
                self.answers.push_back(Input::Answered(answer));
            }
            Effect::StartRunner { name } => self.start_runner(name),
            Effect::Assign(assign) => self.assign(&assign),
            Effect::StopAttempt {
                runner,
                run,
                attempt,
                why,
            } => self
                .runners
                .send(&runner, ToRunner::Stop { run, attempt, why }),
            Effect::Retire { runner } => self.runners.send(&runner, ToRunner::Retire),
            Effect::CallRunner { name } => {
                self.runners.gone(&name);
                let (state, inbox) = (self.state.clone(), self.inbox.clone());
                tokio::spawn(super::runners::call(state, name, inbox));
            }
            Effect::ReadJournal {
                name,
                carrying,
                after,
            } => self.read_journal(name, carrying, after),
            Effect::RemoveGroup { runner } => {
                if let Ok(group) = std::fs::read_to_string(self.state.runner_group(&runner)) {
                    towline_host::cgroup::remove(group.as_ref());
                }
            }
            Effect::RemoveJournals { runners } => self.remove_journals(&runners),
            Effect::EndOrphans(orphans) => orphans::end(&self.state, *orphans, &self.inbox),
            Effect::ReleaseMounts { run } => {
                towline_host::mounts::release_below(&self.state.run(&run).join("io"));
            }
            Effect::ContinueStopped { runners } => continue_stopped(&runners),
            Effect::DropSecrets { submission } => {
                let _ = std::fs::remove_file(self.state.secret(&submission));
            }
            Effect::KeepLimits(limits) => self.keep_limits(limits),
            Effect::LookAtGpus(limits) => gpus::look(limits, &self.inbox),
            Effect::KeepReserve => {
                let is_held = self.reserve.keep();
                self.answers.push_back(Input::ReserveKept(is_held));
            }
            Effect::ReleaseReserve => self.reserve.release(),
            Effect::Order { cluster, order } => self.order(&cluster, order),
            Effect::Tunnel { connection, name } => self.tunnel(connection, &name),
            Effect::Workspaces { connection } => {
                let autos = self.workspaces.changed(&self.state);
                self.reply(connection, Reply::Workspaces { autos }, true);
            }
            Effect::Log(text) => log(&text),
            Effect::Pass(point) => crash::pass(point),
            Effect::Leave => self.leave(),
        }
    }

    /// Exits once the pending replies are sent.
    fn leave(&self) {
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LAST_REPLY_PAUSE).await;
            let _ = inbox.send(Message::Leave);
        });
    }

    fn start_runner(&mut self, name: String) {
        let started = self.runners.start(&self.state, &name, &self.inbox);
        self.answers.push_back(match started {
            Ok(()) => Input::RunnerStarted { name },
            Err(error) => Input::RunnerNotStarted {
                name,
                why: error.to_string(),
            },
        });
    }

    fn assign(&mut self, assign: &Assign) {
        match self.assignment(assign) {
            Ok(assignment) => self
                .runners
                .send(&assign.chosen.runner, ToRunner::Start(Box::new(assignment))),
            Err(error) => self.answers.push_back(Input::NotAssigned {
                chosen: assign.chosen.clone(),
                error,
            }),
        }
    }

    fn assignment(&self, assign: &Assign) -> Result<Assignment> {
        let own = self.state.run(&assign.run);
        let folders = AttemptFolders {
            snapshots: self.state.snapshots(),
            mounts: own.join("io"),
            copies: self.state.copies(),
            transfers: self.state.transfers(),
            run: own,
        };
        assemble::assignment(Wanted {
            run: &assign.run,
            attempt: assign.chosen.attempt,
            parameters: &assign.parameters,
            resolved: &assign.plan.resolved,
            secrets: &self.secrets(&assign.submission)?,
            folders: &folders,
            gpus: assign.gpus.clone(),
            gpu_make: assign.gpu_make,
            grace_millis: self.settings.grace_millis,
            collect_every: self.collect_seconds,
            intent_is_durable: assign.intent_is_durable,
            given: Given::default(),
        })
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

    fn read_journal(&self, name: String, carrying: Option<(RunId, u32)>, after: Duration) {
        let (path, inbox) = (self.state.runner_journal(&name), self.inbox.clone());
        let read = move || Input::JournalRead {
            records: journal::read(&path).map_err(|error| error.to_string()),
            name,
            carrying,
        };
        if after.is_zero() {
            let _ = inbox.send(Message::input(read()));
            return;
        }
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let _ = inbox.send(Message::input(read()));
        });
    }

    fn remove_journals(&self, runners: &[String]) {
        for runner in runners {
            let path = self.state.runner_journal(runner);
            for file in [
                path.with_extension("sock"),
                path.with_extension("cgroup"),
                path,
            ] {
                let _ = std::fs::remove_file(file);
            }
        }
    }

    fn keep_limits(&self, limits: Limits) {
        let path = self.state.limits();
        let written = serde_json::to_vec(&limits)
            .map_err(std::io::Error::other)
            .and_then(|bytes| replace(&path, &bytes));
        if let Err(error) = written {
            log(&format!(
                "{} cannot be written: {error}; the next submission sends the limits again",
                path.display()
            ));
        }
    }
}

fn continue_stopped(runners: &BTreeSet<String>) {
    let all = process::all().into_iter();
    for (pid, _) in all.filter(|(_, facts)| facts.stopped) {
        if let Some(name) = process::words(pid)
            .iter()
            .find(|word| runners.contains(word.as_str()))
        {
            log(&format!(
                "runner {name} is stopped (SIGSTOP) although its run is to end: it gets SIGCONT"
            ));
            process::signal(pid, rustix::process::Signal::CONT);
        }
    }
}
