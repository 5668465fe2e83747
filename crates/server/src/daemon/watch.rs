//! Clients that watch runs.

use super::clients::refuse_with;
use super::far::Order;
use super::{Daemon, Message, Replies};
use std::collections::{HashMap, HashSet};
use towline_core::cluster::RunRef;
use towline_core::event::Recorded;
use towline_core::state::RunState;
use towline_core::{Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::daemon::Reply;

#[derive(Default)]
pub(super) struct Watchers {
    connections: HashMap<u64, Watcher>,
    by_run: HashMap<RunKey, Vec<u64>>,
}

struct Watcher {
    replies: Replies,
    open: HashSet<RunKey>,
    /// The client wants the logs too.
    logs: bool,
}

impl Watchers {
    fn add(&mut self, connection: u64, replies: Replies, open: HashSet<RunKey>, logs: bool) {
        if open.is_empty() {
            let _ = replies.send(Reply::WatchEnded);
            return;
        }
        for key in &open {
            self.by_run.entry(*key).or_default().push(connection);
        }
        self.connections.insert(
            connection,
            Watcher {
                replies,
                open,
                logs,
            },
        );
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

    pub(super) fn tell(&mut self, key: RunKey, recorded: &Recorded, state: &RunState) {
        let Some(connections) = self.by_run.get(&key) else {
            return;
        };
        let ended = state.phase.is_ended();
        let mut done = Vec::new();
        for connection in connections {
            let Some(watcher) = self.connections.get_mut(connection) else {
                continue;
            };
            let _ = watcher.replies.send(Reply::Event {
                recorded: recorded.clone(),
                state: state.clone(),
            });
            if ended {
                watcher.open.remove(&key);
                if watcher.open.is_empty() {
                    let _ = watcher.replies.send(Reply::WatchEnded);
                    done.push(*connection);
                }
            }
        }
        if ended {
            self.by_run.remove(&key);
        }
        for connection in done {
            self.connections.remove(&connection);
        }
    }
}

impl Daemon {
    pub(super) fn watch(
        &mut self,
        connection: u64,
        runs: Vec<RunId>,
        logs: bool,
        replies: Replies,
    ) {
        self.ledger.read(move |history| {
            let states = runs
                .into_iter()
                .map(|run| Ok((run.clone(), history.run(&run)?.map(|record| record.state))))
                .collect();
            Message::WatchStates {
                connection,
                replies,
                logs,
                states,
            }
        });
    }

    /// Fetches the new log bytes of a run, on any cluster, ended or not.
    pub(super) fn bring_logs(&mut self, run: &RunId, replies: Replies) {
        let cluster = self
            .ledger
            .history()
            .run(run)
            .ok()
            .flatten()
            .map(|record| record.cluster);
        let far = self.far_run(run);
        self.ask_far(run, cluster, replies, |replies| Order::Logs {
            run: far,
            replies,
        });
    }

    /// Tells far clusters which runs' logs a client follows, or follows no more.
    fn follow_far(&mut self, keys: &[RunKey], on: bool) {
        let runs = keys.iter().filter_map(|key| self.run_of(*key));
        let far: Vec<(String, RunRef)> = runs
            .filter_map(|run| Some((run.far.clone()?, RunRef::known(&run.id, &run.state))))
            .collect();
        for (cluster, run) in far {
            self.order(&cluster, Order::Follow { run, on });
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
        replies: Replies,
        logs: bool,
        states: Result<Vec<(RunId, Option<RunState>)>>,
    ) {
        let states = match states {
            Ok(states) => states,
            Err(error) => return refuse_with(&replies, &error),
        };
        // The run has ended since the read: its end is being written, and the next read sees it.
        let overtaken = |(run, stored): &(RunId, Option<RunState>)| {
            stored.as_ref().is_some_and(|state| !state.phase.is_ended())
                && self.queue.key(run).is_none()
        };
        if states.iter().any(overtaken) {
            return self.watch(
                connection,
                states.into_iter().map(|(run, _)| run).collect(),
                logs,
                replies,
            );
        }
        let mut open = HashSet::new();
        for (run, stored) in states {
            let live = self.queue.key(&run).and_then(|key| self.run_of(key));
            let state = live.map(|run| run.state.clone()).or(stored);
            if let Some(live) = live {
                open.insert(live.key);
            }
            if let Some(state) = state {
                let _ = replies.send(Reply::State { run, state });
            }
        }
        let keys: Vec<RunKey> = open.iter().copied().collect();
        self.watchers.add(connection, replies, open, logs);
        if logs {
            self.follow_far(&keys, true);
        }
    }
}
