//! What the scheduler gave to the job.

use super::Head;
use crate::far::scheduler;
use crate::gang::Allocation;
use std::io;
use std::time::Duration;
use towline_core::cluster::JobStart;
use towline_core::reason::{Cause, Ending};
use towline_host::crash;

impl Allocation for Head {
    fn job_start(&self) -> &JobStart {
        &self.me
    }

    fn hosts(&self) -> io::Result<Vec<String>> {
        scheduler::hosts()
    }

    fn time_left(&self) -> Option<Duration> {
        scheduler::time_left(&self.me.job)
    }

    fn is_warned(&mut self) -> bool {
        self.signals.is_near_end()
    }

    fn why_ended(&self) -> Ending {
        if self.folder.cancel().exists() {
            return Ending::cause(Cause::ByUser);
        }
        let hosts = self
            .current
            .as_ref()
            .map(|current| &current.claim.hosts[..]);
        scheduler::why_ended(&self.me, hosts.unwrap_or_default())
    }

    fn requeue(&mut self) -> io::Result<()> {
        crash::pass("head.requeue.before");
        scheduler::requeue(&self.me.job)?;
        crash::pass("head.requeue.done");
        Ok(())
    }
}
