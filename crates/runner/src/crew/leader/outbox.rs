//! Records of the run, in its status document.

use super::Leader;
use crate::gang::{Due, Outbox};
use std::io;
use towline_core::cluster::{Claim, Held};
use towline_core::reason::Ending;
use towline_host::crash;

impl Outbox for Leader<'_> {
    fn due(&mut self) -> io::Result<Due> {
        let policy = self.crew.carrier.order.plan.resolved.retry.as_ref();
        Ok(self.status_file.due(policy))
    }

    /// The restart has ended what an earlier start had left open.
    fn end_open(&mut self, attempt: u32) -> io::Result<bool> {
        Err(io::Error::other(format!("attempt {attempt} has no end")))
    }

    fn claim(&mut self, attempt: u32, claim: &Claim) -> io::Result<bool> {
        crash::pass("crew.claim.before");
        self.status_file.claim(attempt, claim.clone())?;
        crash::pass("crew.claimed");
        Ok(true)
    }

    fn started(&mut self, attempt: u32) {
        self.status_file.started(attempt);
        crash::pass("crew.started");
    }

    fn held(&mut self, attempt: u32, held: Held) -> io::Result<()> {
        self.status_file.held(attempt, held);
        Ok(())
    }

    fn end(&mut self, attempt: u32, ending: Ending) -> io::Result<()> {
        crash::pass("crew.end.before");
        self.status_file.end(attempt, ending)?;
        crash::pass("crew.end.written");
        Ok(())
    }
}
