//! Whether an attempt has to end: by the user, the scheduler, its time limit, or a node that failed
//! or is lost.

use super::Head;
use crate::far::lease::is_lapsed;
use crate::far::records::{self, Records};
use crate::far::scheduler;
use std::io;
use std::time::{Duration, Instant};
use towline_core::cluster::{Claim, End};
use towline_core::reason::{Cause, Ending};
use towline_wire::stage::{Holder, LEASE_EVERY, Record, StopOrder};

/// The end of an attempt that is under way.
#[derive(Default)]
pub(super) struct Stopping {
    pub(super) ending: Option<Ending>,
    since: Option<Instant>,
}

impl Stopping {
    pub(super) fn is_late(&self, grace: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() > grace)
    }
}

impl Head {
    /// Checks whether the attempt has to end; if so, writes the order to stop for the nodes.
    pub(super) fn check_for_end(
        &mut self,
        attempt: u32,
        stopping: &mut Stopping,
    ) -> io::Result<()> {
        let (ended, near_end) = (self.signals.is_end(), self.signals.is_near_end());
        if stopping.ending.is_some() {
            return Ok(());
        }
        let found = Records::read(&self.folder)?;
        let of = found.attempts.get(&attempt);
        let order = of.and_then(|of| of.stop.clone());
        let ending = if let Some(StopOrder { ending, .. }) = order {
            self.leaving = true;
            Some(ending)
        } else if found.cancelled {
            Some(Ending::cause(Cause::ByUser))
        } else if ended {
            self.leaving = true;
            Some(scheduler::why_ended(
                &self.me,
                of.and_then(|of| of.claim.as_ref())
                    .map_or(&[], |claim| &claim.hosts[..]),
            ))
        } else if self.deadline.is_near(near_end) {
            Some(Ending::cause(Cause::TimeLimit))
        } else {
            let claim = of.and_then(|of| of.claim.as_ref());
            match self.first_failure(attempt)? {
                // The scheduler's signal reached the node before us: the scheduler knows why.
                Some(Ending {
                    cause: Some(Cause::ByUser),
                    ..
                }) => {
                    self.leaving = true;
                    Some(scheduler::why_ended(
                        &self.me,
                        claim.map_or(&[], |claim| &claim.hosts[..]),
                    ))
                }
                Some(ending) => Some(ending),
                None => claim
                    .map(|claim| self.lost_node(attempt, claim))
                    .transpose()?
                    .flatten(),
            }
        };
        if let Some(ending) = ending {
            records::make(
                &self.folder,
                attempt,
                Record::Stop,
                &StopOrder {
                    ending: ending.clone(),
                    at_once: false,
                    by_scheduler: ended,
                },
            )?;
            *stopping = Stopping {
                ending: Some(ending),
                since: Some(Instant::now()),
            };
        }
        Ok(())
    }

    /// The ending of the first node that failed. It ends the other nodes.
    fn first_failure(&self, attempt: u32) -> io::Result<Option<Ending>> {
        let nodes = self.order.plan.resolved.shape.nodes;
        if nodes <= 1 {
            return Ok(None);
        }
        let mut failed: Option<End> = None;
        for node in 0..nodes {
            if let Some(end) = self
                .node_end(attempt, node)?
                .filter(|end| end.ending.cause.is_some())
                && failed.as_ref().is_none_or(|first| end.at < first.at)
            {
                failed = Some(end);
            }
        }
        Ok(failed.map(|end| end.ending))
    }

    /// An ending, where a node that had begun no longer renews its lease.
    fn lost_node(&mut self, attempt: u32, claim: &Claim) -> io::Result<Option<Ending>> {
        if self.order.plan.resolved.shape.nodes <= 1 || self.leases_checked.elapsed() < LEASE_EVERY
        {
            return Ok(None);
        }
        self.leases_checked = Instant::now();
        let claim_file = self.folder.record(attempt, Record::Claim);
        for lease in self.leases_without_end(attempt, claim)? {
            if lease.exists() && is_lapsed(std::slice::from_ref(&lease), &claim_file)? {
                // No further attempt begins on these nodes.
                self.lost = true;
                let host = (0..)
                    .zip(&claim.hosts)
                    .find(|(node, _)| self.folder.lease(attempt, Holder::Node(*node)) == lease)
                    .map_or("", |(_, host)| host);
                return Ok(Some(
                    Ending::cause(Cause::NodeFailed)
                        .detail(format!("its node {host} does not respond any more")),
                ));
            }
        }
        Ok(None)
    }
}
