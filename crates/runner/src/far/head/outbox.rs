//! Records of the run, in its folder.

use super::{Current, Head};
use crate::far::lease::{Lease, is_lapsed};
use crate::far::records::{self, Due, Records};
use crate::gang::{CHECK_INTERVAL, Outbox};
use std::io;
use std::path::PathBuf;
use towline_core::cluster::{Claim, End, Held};
use towline_core::reason::{Cause, Ending};
use towline_host::crash;
use towline_wire::stage::{Holder, Record, StopOrder};

impl Outbox for Head {
    fn due(&mut self) -> io::Result<Due> {
        let found = Records::read(&self.folder)?;
        Ok(found.due(self.order.plan.resolved.retry.as_ref()))
    }

    /// A later start of the job waits until nothing of the attempt can be alive, and ends it. Any
    /// other start is superfluous.
    fn end_open(&mut self, attempt: u32) -> io::Result<bool> {
        let found = Records::read(&self.folder)?;
        let Some(claim) = found.attempts.get(&attempt).and_then(|of| of.claim.clone()) else {
            return Ok(true);
        };
        let is_later = claim.by.job == self.me.job && claim.by.restarts < self.me.restarts;
        let leases = self.leases(attempt, &claim);
        let claim_file = self.folder.record(attempt, Record::Claim);
        if !is_later && !is_lapsed(&leases, &claim_file)? {
            return Ok(false);
        }
        if claim.by == self.me {
            // This very start claimed it before: it is unknown what it did.
            return Ok(false);
        }
        let ending = Ending::cause(Cause::NodeFailed).detail(format!(
            "its node was lost ({})",
            claim.hosts.first().map_or("", String::as_str)
        ));
        let stop = StopOrder {
            ending: ending.clone(),
            at_once: true,
            by_scheduler: false,
        };
        records::make(&self.folder, attempt, Record::Stop, &stop)?;
        while !self.folder.record(attempt, Record::End).exists()
            && !is_lapsed(&leases, &claim_file)?
        {
            self.signals.wait(CHECK_INTERVAL, &[]);
            if self.signals.is_end() {
                return Ok(false);
            }
        }
        self.record_end(attempt, ending)?;
        Ok(true)
    }

    fn claim(&mut self, attempt: u32, claim: &Claim) -> io::Result<bool> {
        crash::pass("head.claim.before");
        if !records::make(&self.folder, attempt, Record::Claim, claim)? {
            return Ok(false);
        }
        crash::pass("head.claimed");
        self.current = Some(Current {
            attempt,
            claim: claim.clone(),
            lease: Lease::take(self.folder.lease(attempt, Holder::Head))?,
            is_held: false,
        });
        Ok(true)
    }

    /// The runner of the first node records it.
    fn started(&mut self, _attempt: u32) {}

    fn held(&mut self, attempt: u32, held: Held) -> io::Result<()> {
        if let Some(current) = &mut self.current {
            current.is_held = true;
        }
        records::make(&self.folder, attempt, Record::Held, &held).map(|_| ())
    }

    fn end(&mut self, attempt: u32, ending: Ending) -> io::Result<()> {
        self.record_end(attempt, ending)?;
        // Its lease goes with it.
        self.current = None;
        Ok(())
    }
}

impl Head {
    /// Records the end. The first record counts.
    pub(super) fn record_end(&self, attempt: u32, ending: Ending) -> io::Result<()> {
        crash::pass("head.end.before");
        let end = End {
            at: towline_host::clock::now(),
            ending,
        };
        records::make(&self.folder, attempt, Record::End, &end)?;
        crash::pass("head.end.written");
        Ok(())
    }

    fn leases(&self, attempt: u32, claim: &Claim) -> Vec<PathBuf> {
        let nodes = (0..u32::try_from(claim.hosts.len()).unwrap_or(u32::MAX)).map(Holder::Node);
        [Holder::Head]
            .into_iter()
            .chain(nodes)
            .map(|holder| self.folder.lease(attempt, holder))
            .collect()
    }
}
