//! Clients that watch runs.

use super::ledger::{Query, ReadThen};
use super::{Daemon, Order};
use std::collections::{BTreeSet, HashMap};
use towline_core::cluster::RunRef;
use towline_core::event::Recorded;
use towline_core::state::RunState;
use towline_core::{Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::daemon::Reply;

#[derive(Debug, Default)]
pub(super) struct Watchers {
    connections: HashMap<u64, Watcher>,
    by_run: HashMap<RunKey, Vec<u64>>,
}

#[derive(Debug)]
struct Watcher {
    open: BTreeSet<RunKey>,
    /// The client wants the logs too.
    logs: bool,
}

impl Watchers {
    fn add(&mut self, connection: u64, open: BTreeSet<RunKey>, logs: bool) {
        for key in &open {
            self.by_run.entry(*key).or_default().push(connection);
        }
        self.connections.insert(connection, Watcher { open, logs });
    }

    /// Whether any client follows the logs of a run.
    fn is_followed(&self, key: RunKey) -> bool {
        self.by_run.get(&key).is_some_and(|connections| {
            connections.iter().any(|one| {
                self.connections
                    .get(one)
                    .is_some_and(|watcher| watcher.logs)
            })
        })
    }

    /// Removes a client. Returns the runs whose logs it followed.
    fn remove(&mut self, connection: u64) -> Vec<RunKey> {
        let Some(watcher) = self.connections.remove(&connection) else {
            return Vec::new();
        };
        for key in &watcher.open {
            if let Some(connections) = self.by_run.get_mut(key) {
                connections.retain(|other| *other != connection);
                if connections.is_empty() {
                    self.by_run.remove(key);
                }
            }
        }
        if watcher.logs {
            watcher.open.into_iter().collect()
        } else {
            Vec::new()
        }
    }

    /// The clients that watch a run.
    fn of(&self, key: RunKey) -> Vec<u64> {
        self.by_run.get(&key).cloned().unwrap_or_default()
    }

    /// Notes that a run has ended. Returns the clients whose runs have all ended.
    fn ended(&mut self, key: RunKey) -> Vec<u64> {
        let mut done = Vec::new();
        for connection in self.by_run.remove(&key).unwrap_or_default() {
            let Some(watcher) = self.connections.get_mut(&connection) else {
                continue;
            };
            watcher.open.remove(&key);
            if watcher.open.is_empty() {
                self.connections.remove(&connection);
                done.push(connection);
            }
        }
        done
    }
}

impl Daemon {
    /// Sends an event to the clients that watch its run.
    pub(super) fn tell_watchers(&mut self, key: RunKey, recorded: &Recorded, state: &RunState) {
        for connection in self.watchers.of(key) {
            let event = Reply::Event {
                recorded: recorded.clone(),
                state: state.clone(),
            };
            self.tell(connection, event);
        }
        if state.phase.is_ended() {
            for connection in self.watchers.ended(key) {
                self.reply(connection, Reply::WatchEnded);
            }
        }
    }

    pub(super) fn watch(&mut self, connection: u64, runs: Vec<RunId>, logs: bool) {
        let query = Query::States(runs.clone());
        let then = ReadThen::Watch {
            connection,
            runs,
            logs,
        };
        self.ledger.read(query, then);
    }

    /// Tells far clusters which runs' logs a client follows, or follows no more.
    fn follow_far(&mut self, keys: &[RunKey], on: bool) {
        let runs = keys.iter().filter_map(|key| self.run_of(*key));
        let far: Vec<(String, RunRef)> = runs
            .filter_map(|run| Some((run.far.clone()?, RunRef::known(&run.id, &run.state))))
            .collect();
        for (cluster, run) in far {
            self.order(cluster, Order::Follow { run, on });
        }
    }

    pub(super) fn unwatch(&mut self, connection: u64) {
        let left = self.watchers.remove(connection);
        let unfollowed: Vec<RunKey> = left
            .into_iter()
            .filter(|key| !self.watchers.is_followed(*key))
            .collect();
        self.follow_far(&unfollowed, false);
    }

    /// Answers with the states in the history, or with newer ones from memory.
    pub(super) fn watch_states(
        &mut self,
        connection: u64,
        runs: Vec<RunId>,
        logs: bool,
        states: Result<Vec<Option<RunState>>>,
    ) {
        let states = match states {
            Ok(states) => states,
            Err(error) => return self.refuse_with(connection, &error),
        };
        // The run has ended since the read: its end is being written, and the next read sees it.
        let overtaken = |(run, stored): (&RunId, &Option<RunState>)| {
            stored.as_ref().is_some_and(|state| !state.phase.is_ended())
                && self.queue.key(run).is_none()
        };
        if runs.iter().zip(&states).any(overtaken) {
            return self.watch(connection, runs, logs);
        }
        let mut open = BTreeSet::new();
        for (run, stored) in runs.into_iter().zip(states) {
            let live = self.queue.key(&run).and_then(|key| self.run_of(key));
            open.extend(live.map(|live| live.key));
            if let Some(state) = live.map(|live| live.state.clone()).or(stored) {
                self.tell(connection, Reply::State { run, state });
            }
        }
        if open.is_empty() {
            return self.reply(connection, Reply::WatchEnded);
        }
        let keys: Vec<RunKey> = open.iter().copied().collect();
        self.watchers.add(connection, open, logs);
        if logs {
            self.follow_far(&keys, true);
        }
    }
}
