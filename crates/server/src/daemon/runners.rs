//! The runners: some carry a run, one or more wait for the next.

use super::{Daemon, Effect};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use towline_engine::history::RunKey;

/// How many idle runners stay while there is work, and while there is none.
const IDLE_IN_WORK: usize = 8;
const IDLE_AT_REST: usize = 1;

#[derive(Debug)]
struct Runner {
    carrying: Option<(RunKey, u32)>,
    /// The assignment that was sent on the present connection.
    sent: Option<(RunKey, u32)>,
    /// An earlier daemon started it, or its connection was lost: it exits after its run.
    is_adopted: bool,
}

/// The run that waits for a runner which is being started.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) key: RunKey,
    pub(super) gpus: BTreeSet<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Runners {
    runners: HashMap<String, Runner>,
    idle: Vec<String>,
    /// Runners that are being started, with the run that each is for.
    starting: BTreeMap<String, Option<Start>>,
    /// Dead runners whose journal can be removed once the history is on disk.
    pub(super) forgotten_journals: BTreeSet<String>,
    next_name: u32,
    /// Why the last start of a runner failed.
    pub(super) trouble: Option<String>,
}

impl Runners {
    pub(super) fn count(&self) -> usize {
        self.runners.len()
    }

    /// A waiting runner, if there is one.
    pub(super) fn take_idle(&mut self) -> Option<String> {
        self.idle.pop()
    }

    pub(super) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// The runs that wait for a runner which is being started.
    pub(super) fn starting(&self) -> impl Iterator<Item = &Start> {
        self.starting.values().flatten()
    }

    /// Notes that a runner has started. Returns the run that it was started for.
    pub(super) fn started(&mut self, name: &str) -> Option<Start> {
        self.trouble = None;
        self.insert(name, false);
        self.starting.remove(name).flatten()
    }

    pub(super) fn not_started(&mut self, name: &str, why: &str) -> Option<Start> {
        self.trouble = Some(why.to_owned());
        self.starting.remove(name).flatten()
    }

    pub(super) fn reached(&mut self, name: &str) {
        self.insert(name, true);
    }

    fn insert(&mut self, name: &str, is_adopted: bool) {
        let runner = Runner {
            carrying: None,
            sent: None,
            is_adopted,
        };
        self.runners.insert(name.to_owned(), runner);
    }

    pub(super) fn put_back(&mut self, name: &str) {
        if let Some(runner) = self.runners.get_mut(name) {
            runner.carrying = None;
            self.idle.push(name.to_owned());
        }
    }

    pub(super) fn assign(&mut self, name: &str, key: RunKey, attempt: u32) {
        if let Some(runner) = self.runners.get_mut(name) {
            runner.carrying = Some((key, attempt));
        }
    }

    pub(super) fn sent(&mut self, name: &str, key: RunKey, attempt: u32) {
        if let Some(runner) = self.runners.get_mut(name) {
            runner.sent = Some((key, attempt));
        }
    }

    /// Whether the runner may not have read its assignment yet.
    pub(super) fn is_to_read(&self, name: &str, key: RunKey, attempt: u32) -> bool {
        self.runners
            .get(name)
            .is_some_and(|runner| !runner.is_adopted || runner.sent == Some((key, attempt)))
    }

    pub(super) fn is_there(&self, name: &str) -> bool {
        self.runners.contains_key(name)
    }

    /// Removes a runner from the list.
    pub(super) fn gone(&mut self, name: &str) {
        self.idle.retain(|idle| idle != name);
        self.runners.remove(name);
    }
}

impl Daemon {
    /// Starts a runner. Its name is unique for ever: it contains the machine's boot, the time and
    /// the daemon's pid.
    pub(super) fn start_runner(&mut self, start: Option<Start>) {
        self.runners.next_name += 1;
        let name = format!(
            "{}-{}-{}-{}",
            self.settings.boot, self.now.wall.0, self.settings.pid, self.runners.next_name
        );
        self.runners.starting.insert(name.clone(), start);
        self.effect(Effect::StartRunner { name });
    }

    /// Keeps one runner waiting, so that the next submission starts at once.
    pub(super) fn keep_one_waiting(&mut self) {
        if !self.runners.has_idle() && self.runners.starting.is_empty() {
            self.start_runner(None);
        }
    }

    pub(super) fn runner_started(&mut self, name: &str) {
        match self.runners.started(name) {
            Some(start) if self.queue.is_waiting(start.key) => {
                self.dispatch(start.key, start.gpus, name.to_owned());
            }
            Some(_) => {
                self.runners.put_back(name);
                self.unsettled = true;
            }
            None => self.runners.put_back(name),
        }
    }

    pub(super) fn runner_not_started(&mut self, name: &str, why: &str) {
        let text = format!("no runner can be started: {why}");
        if self.runners.not_started(name, why).is_some() {
            self.pause_starts(text);
        } else {
            self.log(text);
        }
    }

    /// Notes the end of a runner's run: it waits for the next, or exits if an earlier daemon
    /// started it.
    pub(super) fn runner_finished(&mut self, name: &str) {
        let Some(runner) = self.runners.runners.get_mut(name) else {
            return;
        };
        runner.carrying = None;
        if runner.is_adopted {
            let runner = name.to_owned();
            self.effect(Effect::Retire { runner });
        } else if !self.runners.idle.iter().any(|idle| idle == name) {
            self.runners.idle.push(name.to_owned());
        }
    }

    /// Ends surplus idle runners.
    pub(super) fn trim_runners(&mut self) {
        let keep = if self.queue.is_empty() {
            IDLE_AT_REST
        } else {
            IDLE_IN_WORK
        };
        let surplus = self.runners.idle.len().saturating_sub(keep);
        for runner in self.runners.idle.drain(..surplus).collect::<Vec<_>>() {
            self.effect(Effect::Retire { runner });
        }
    }

    /// Removes journals, each only after everything it says is in the history on disk.
    pub(super) fn remove_journals(&mut self) {
        if self.runners.forgotten_journals.is_empty() {
            return;
        }
        let forgotten = std::mem::take(&mut self.runners.forgotten_journals);
        let runners = forgotten.into_iter().collect();
        self.ledger.write(
            vec![super::ledger::Write::ForgetUnused],
            true,
            super::ledger::WriteThen::RemoveJournals { runners },
        );
    }
}
