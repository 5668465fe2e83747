//! What the service gave to the job, from its variables and the nodes that came.

use super::Leader;
use crate::crew::Crew;
use crate::gang::Allocation;
use std::io;
use towline_core::cluster::JobStart;
use towline_core::reason::{Cause, Ending};

/// The service's name for the job.
pub(super) fn job(crew: &Crew<'_>) -> String {
    std::env::var("AZUREML_RUN_ID").unwrap_or_else(|_| crew.task.run.to_string())
}

impl Allocation for Leader<'_> {
    fn job_start(&self) -> &JobStart {
        &self.me
    }

    fn hosts(&self) -> io::Result<Vec<String>> {
        let others = (1..self.crew.nodes).map(|node| self.peers.host(node).to_owned());
        let own = self.crew.station.leader.clone();
        Ok([own].into_iter().chain(others).collect())
    }

    /// The service does not say why it ends a job.
    fn why_ended(&self) -> Ending {
        Ending::cause(if self.status_file.is_cancelled() {
            Cause::ByUser
        } else {
            Cause::Preempted
        })
    }

    fn requeue(&mut self) -> io::Result<()> {
        Err(io::Error::other("a job of this service cannot be requeued"))
    }
}
