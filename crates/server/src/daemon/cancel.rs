//! Cancels runs for the user, and removes ended runs from the history.

use super::clients::refuse_with;
use super::far::Order;
use super::{Cancelled, Daemon, Message, Replies, now, write_of};
use crate::ledger::{Write, Written};
use std::collections::BTreeMap;
use towline_core::event::RunEvent;
use towline_core::state::cancelled;
use towline_core::{Result, RunId};
use towline_host::crash;
use towline_wire::daemon::Reply;

impl Daemon {
    /// Records the cancel on disk before signalling anything: a crash in between does not lose it.
    pub(super) fn cancel(&mut self, runs: Vec<RunId>, replies: Replies) {
        crash::pass("daemon.cancel.received");
        let mut sorted = Cancelled {
            asked: Vec::new(),
            already_ended: Vec::new(),
            to_stop: Vec::new(),
            events: Vec::new(),
            far: BTreeMap::new(),
        };
        for id in runs {
            let Some(key) = self.queue.key(&id) else {
                sorted.already_ended.push(id);
                continue;
            };
            sorted.asked.push(id.clone());
            sorted
                .events
                .extend(self.apply(key, RunEvent::CancelIntent, now()));
            if let Some(cluster) = self.run_of(key).and_then(|run| run.far.clone()) {
                sorted
                    .far
                    .entry(cluster)
                    .or_default()
                    .push(self.far_run(&id));
                continue;
            }
            if self
                .run_of(key)
                .is_some_and(|run| run.state.runner.is_some())
            {
                sorted.to_stop.push(key);
                continue;
            }
            let attempt = self.run_of(key).map_or(0, |run| run.state.attempt);
            sorted.events.extend(self.apply(
                key,
                RunEvent::Ended {
                    attempt,
                    ending: cancelled(),
                },
                now(),
            ));
            self.queue.refile(key);
        }
        let writes: Vec<Write> = sorted.events.iter().map(write_of).collect();
        self.ledger
            .write(writes, true, move |result| Message::CancelWritten {
                cancelled: sorted,
                replies,
                result,
            });
    }

    pub(super) fn cancel_written(
        &mut self,
        cancelled: Cancelled,
        replies: &Replies,
        result: Result<Vec<Written>>,
    ) {
        crash::pass("daemon.cancel.committed");
        match result {
            Ok(written) => {
                let keys: Vec<_> = cancelled
                    .events
                    .iter()
                    .filter(|event| event.state.phase.is_ended())
                    .map(|event| event.key)
                    .collect();
                self.announce(cancelled.events, &written);
                for key in keys {
                    if let Some(submission) = self.close(key) {
                        self.drop_secrets(&submission);
                    }
                }
                let _ = replies.send(Reply::Cancelling {
                    runs: cancelled.asked,
                    already_ended: cancelled.already_ended,
                });
            }
            Err(error) => refuse_with(replies, &error),
        }
        for (cluster, runs) in cancelled.far {
            self.order(&cluster, Order::Cancel { runs });
        }
        for key in cancelled.to_stop {
            self.send_stop_if_wanted(key);
        }
        crash::pass("daemon.cancel.sent");
        self.unsettled = true;
    }

    /// Stops runs whose cancel cannot be written yet, because one of them may be what fills the
    /// disk. Their end records say that the user asked, so nothing starts them again. Harmless when
    /// repeated.
    pub(super) fn stop_unwritten(&mut self) {
        let wanted: Vec<_> = self
            .queue
            .held_runs()
            .filter(|run| run.state.cancel_requested)
            .map(|run| run.key)
            .collect();
        for key in wanted {
            self.send_stop_if_wanted(key);
        }
    }

    pub(super) fn forget(&mut self, runs: Vec<RunId>, told: bool, replies: Replies) {
        if !told {
            self.forget_far(&runs);
        }
        let mut writes: Vec<Write> = runs
            .iter()
            .map(|run| Write::Forget { run: run.clone() })
            .collect();
        writes.push(Write::ForgetUnused);
        self.ledger
            .write(writes, true, move |result| Message::Forgotten {
                runs,
                replies,
                result,
            });
    }

    pub(super) fn forgotten(runs: Vec<RunId>, replies: &Replies, result: Result<Vec<Written>>) {
        match result {
            Ok(written) => {
                let gone = runs
                    .into_iter()
                    .zip(written)
                    .filter(|(_, written)| matches!(written, Written::Forgotten(true)))
                    .map(|(run, _)| run);
                // The client removes the folders, because trees of thousands of files take time.
                let _ = replies.send(Reply::Forgotten {
                    runs: gone.collect(),
                });
            }
            Err(error) => refuse_with(replies, &error),
        }
    }
}
