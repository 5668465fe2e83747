//! Carrying an attempt on one node: begins it, watches for the order to end, returns how it ended.

use super::{UNCOLLECTED_DETAIL, is_orphan};
use crate::attempt::{Attempt, Change};
use crate::end_signal::{EndSignal, SignalSender};
use crate::far::lease::{Lease, is_lapsed};
use crate::far::records::{self, Records};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use towline_core::cluster::Started;
use towline_core::reason::{Cause, Ending};
use towline_wire::runner::{Assignment, Stop};
use towline_wire::stage::{Holder, Record, RunFolder, StopOrder};

/// How often the records are read for an order to end.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long after the order to end the scheduler's own signal may arrive.
const SCHEDULER_SIGNAL_LAG: Duration = Duration::from_secs(2);

pub(super) struct Carrier<'a> {
    pub(super) folder: RunFolder,
    pub(super) node: u32,
    pub(super) attempt: u32,
    pub(super) parent: u32,
    pub(super) lease: &'a Lease,
    /// The first node downloads the data that this one reads.
    pub(super) needs_data: bool,
    /// This node collects what all nodes write.
    pub(super) collects: bool,
    /// Other nodes may still be writing what this node collects.
    pub(super) others_write: bool,
    /// How many nodes the attempt has.
    pub(super) nodes: u32,
    /// The ending that the order to end gives.
    pub(super) ended_by: Option<Ending>,
    /// Since when we wait for the scheduler's signal.
    pub(super) ordered_at: Option<Instant>,
    pub(super) checked_at: Instant,
}

impl Carrier<'_> {
    pub(super) fn carry(&mut self, assignment: Assignment) -> io::Result<Ending> {
        let mut signal = EndSignal::new()?;
        if let Some(ending) = self.wait_for_data(&mut signal)? {
            return Ok(ending);
        }
        let reach_all = assignment.signals_reach_all;
        let mut attempt = Attempt::new(assignment, self.folder.root(), "node");
        if self.others_write {
            attempt.wait_for_other_nodes();
        }
        let mut change = attempt.begin();
        loop {
            match change {
                Change::Done => break,
                Change::SetUpStarted | Change::RanksStarted if self.node == 0 => {
                    records::make(
                        &self.folder,
                        self.attempt,
                        Record::Started,
                        &Started {
                            at: towline_host::clock::now(),
                        },
                    )?;
                    if change == Change::RanksStarted {
                        records::create(&self.ready_file(), &())?;
                    }
                }
                _ => {}
            }
            let received = signal.wait(Some(&attempt), END_CHECK_INTERVAL)?;
            if self.others_write && attempt.is_collecting() && !self.is_any_other_alive() {
                self.others_write = false;
                attempt.other_nodes_have_ended();
            }
            if self.must_end_at_once(&mut attempt, received, reach_all) {
                // The next attempt may begin at any moment: no process of ours may be alive then.
                towline_host::process::kill_all_descendants();
                let ending = self.ended_by.clone().unwrap_or_else(|| {
                    Ending::cause(Cause::NodeFailed)
                        .detail("the node lost its connection to the cluster")
                });
                return Ok(ending.with_uncollected(self.collects.then_some(UNCOLLECTED_DETAIL)));
            }
            change = attempt.wake();
        }
        // The reason of the order counts, not how the ranks ended.
        Ok(self.ended_by.clone().map_or_else(
            || attempt.ending(),
            |ending| ending.with_uncollected(attempt.uncollected()),
        ))
    }

    /// Whether another node has not written down its end and may still be alive.
    fn is_any_other_alive(&self) -> bool {
        let silent = |node: &u32| !self.folder.node_end(self.attempt, *node).exists();
        let silent: Vec<PathBuf> = (0..self.nodes)
            .filter(|node| *node != self.node)
            .filter(silent)
            .map(|node| self.folder.lease(self.attempt, Holder::Node(node)))
            .collect();
        !silent.is_empty()
            && !is_lapsed(&silent, &self.folder.record(self.attempt, Record::Claim))
                .unwrap_or(false)
    }

    fn ready_file(&self) -> PathBuf {
        self.folder
            .root()
            .join(format!("attempt-{}.ready", self.attempt))
    }

    /// Waits until the first node has downloaded the data. Returns an ending if the attempt is
    /// stopped meanwhile.
    fn wait_for_data(&self, signal: &mut EndSignal) -> io::Result<Option<Ending>> {
        while self.needs_data && !self.ready_file().exists() {
            let signalled = signal.wait(None, END_CHECK_INTERVAL)?.is_some();
            let records = Records::read(&self.folder)?;
            let stop = records
                .attempts
                .get(&self.attempt)
                .and_then(|of| of.stop.clone());
            if let Some(StopOrder { ending, .. }) = stop {
                return Ok(Some(ending));
            }
            if self.lease.is_lost() || is_orphan(self.parent) {
                return Ok(Some(
                    Ending::cause(Cause::NodeFailed)
                        .detail("the node lost its connection to the cluster"),
                ));
            }
            if signalled || records.cancelled {
                return Ok(Some(Ending::cause(Cause::ByUser)));
            }
        }
        Ok(None)
    }

    /// Checks for an order to end and passes it to the attempt. `true`: at once, without grace.
    fn must_end_at_once(
        &mut self,
        attempt: &mut Attempt,
        received: Option<SignalSender>,
        reach_all: bool,
    ) -> bool {
        if self.lease.is_lost() {
            return true;
        }
        if reach_all && received == Some(SignalSender::Other) && !is_orphan(self.parent) {
            // The ranks have received the signal too.
            attempt.stop_signalled(Stop::ByUser);
        }
        if received.is_none() && self.checked_at.elapsed() < END_CHECK_INTERVAL {
            return false;
        }
        self.checked_at = Instant::now();
        let Ok(records) = Records::read(&self.folder) else {
            return false;
        };
        let stop = records
            .attempts
            .get(&self.attempt)
            .and_then(|of| of.stop.clone());
        if let Some(StopOrder {
            ending,
            at_once,
            by_scheduler,
        }) = stop
        {
            self.ended_by = Some(ending);
            // The scheduler's signal is on its way to all processes.
            let ordered_at = *self.ordered_at.get_or_insert_with(Instant::now);
            if at_once
                || !(reach_all && by_scheduler)
                || ordered_at.elapsed() >= SCHEDULER_SIGNAL_LAG
            {
                attempt.stop(Stop::ByUser);
            }
            return at_once;
        }
        if is_orphan(self.parent) {
            self.ended_by.get_or_insert_with(|| {
                Ending::cause(Cause::NodeFailed)
                    .detail(format!("the runner of node {} was killed", self.node))
            });
            attempt.stop(Stop::ByUser);
        }
        if received.is_some() || records.cancelled {
            attempt.stop(Stop::ByUser);
        }
        false
    }
}
