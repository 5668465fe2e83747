//! Cancels runs for the user, and removes ended runs from the history.

use super::ledger::{Query, ReadThen, Write, WriteThen, Written};
use super::{Announced, Cancelled, Daemon, Order, write_of};
use std::collections::BTreeSet;
use towline_core::cluster::RunRef;
use towline_core::event::RunEvent;
use towline_core::state::cancelled;
use towline_core::{Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::daemon::Reply;

impl Daemon {
    /// Records the cancel on disk before signalling anything: a crash in between does not lose it.
    pub(super) fn cancel(&mut self, runs: Vec<RunId>, by: Option<&str>, connection: u64) {
        self.pass("daemon.cancel.received");
        let mut sorted = Cancelled::default();
        let mut unsent = BTreeSet::new();
        for id in runs {
            let Some(key) = self.queue.key(&id) else {
                sorted.already_ended.push(id);
                continue;
            };
            sorted.asked.push(id.clone());
            sorted.events.extend(self.apply_now(
                key,
                RunEvent::CancelIntent {
                    by: by.map(str::to_owned),
                },
            ));
            let Some(run) = self.run_of(key) else {
                continue;
            };
            if run.is_unsent() {
                unsent.insert(run.submission.clone());
                continue;
            }
            if let Some(cluster) = run.far.clone() {
                let far = RunRef::known(&run.id, &run.state);
                sorted.far.entry(cluster).or_default().push(far);
                continue;
            }
            if run.state.runner.is_some() {
                sorted.to_stop.push(key);
                continue;
            }
            let ended = RunEvent::Ended {
                attempt: run.state.attempt,
                ending: cancelled(),
            };
            sorted.events.extend(self.apply_now(key, ended));
            self.queue.refile(key);
        }
        for submission in unsent {
            let ended = self.end_unsent(&submission);
            sorted.events.extend(ended);
        }
        let writes: Vec<Write> = sorted.events.iter().map(write_of).collect();
        let then = WriteThen::Cancelled {
            cancelled: Box::new(sorted),
            connection,
        };
        self.ledger.write(writes, true, then);
    }

    /// Ends the runs of a submission that its cluster was never sent, if all are cancelled. One run
    /// of a sweep cannot be left out: it is sent with the others, and cancelled there.
    fn end_unsent(&mut self, submission: &RunId) -> Vec<Announced> {
        let keys = self.queue.keys_of(submission);
        let is_cancelled = |key: &RunKey| {
            let run = self.run_of(*key);
            run.is_none_or(|run| run.state.cancel_requested)
        };
        if !keys.iter().all(is_cancelled) {
            return Vec::new();
        }
        let end = |key: &RunKey| {
            let ended = RunEvent::Ended {
                attempt: 0,
                ending: cancelled(),
            };
            self.apply_now(*key, ended)
        };
        keys.iter().filter_map(end).collect()
    }

    pub(super) fn cancel_written(
        &mut self,
        cancelled: Cancelled,
        connection: u64,
        result: Result<Vec<Written>>,
    ) {
        self.pass("daemon.cancel.committed");
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
                        self.drop_secrets(submission);
                    }
                }
                self.judge_dependents();
                let reply = Reply::Cancelling {
                    runs: cancelled.asked,
                    already_ended: cancelled.already_ended,
                };
                self.reply(connection, reply);
            }
            Err(error) => self.refuse_with(connection, &error),
        }
        for (cluster, runs) in cancelled.far {
            self.order(cluster, Order::Cancel { runs });
        }
        for key in cancelled.to_stop {
            self.send_stop_if_wanted(key);
        }
        self.pass("daemon.cancel.sent");
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

    pub(super) fn forget(&mut self, runs: Vec<RunId>, told: bool, connection: u64) {
        if !told {
            self.ledger
                .read(Query::FarRuns(runs.clone()), ReadThen::ForgetFar);
        }
        let mut writes: Vec<Write> = runs
            .iter()
            .map(|run| Write::Forget { run: run.clone() })
            .collect();
        writes.push(Write::ForgetUnused);
        self.ledger
            .write(writes, true, WriteThen::Forgotten { runs, connection });
    }

    pub(super) fn forgotten(
        &mut self,
        runs: Vec<RunId>,
        connection: u64,
        result: Result<Vec<Written>>,
    ) {
        match result {
            Ok(written) => {
                let gone = runs
                    .into_iter()
                    .zip(written)
                    .filter(|(_, written)| matches!(written, Written::Forgotten(true)))
                    .map(|(run, _)| run);
                // The client removes the folders, because trees of thousands of files take time.
                let runs = gone.collect();
                self.reply(connection, Reply::Forgotten { runs });
            }
            Err(error) => self.refuse_with(connection, &error),
        }
    }
}
