//! Deletes what the service and the stage store of ended runs.

use super::super::client::refusal;
use super::super::client::url;
use super::super::observe::job_name;
use super::AzureCluster;
use std::time::Duration;
use std::time::Instant;
use towline_core::Result;
use towline_core::cloud::Call;
use towline_core::cluster::RunRef;
use towline_wire::crew::keys;
/// How long the service may finalize an ended job before it lets us delete it.
const DELETE_TIMEOUT: Duration = Duration::from_secs(20);
const DELETE_RETRY_INTERVAL: Duration = Duration::from_millis(250);

impl AzureCluster {
    pub(super) fn forget_runs(&self, runs: &[RunRef]) -> Result<()> {
        let site = self.site()?;
        for far in runs {
            let Some(stage) = self.stage_of_ours(far)? else {
                // A colleague or another tool submitted it, so it is theirs.
                self.memory().forget(&far.run);
                continue;
            };
            self.delete_job(&url(
                self.cloud(),
                &format!("{}/jobs/{}", site.scope.id(), job_name(far)),
            ))?;
            let mut keys_to_delete = vec![format!("{stage}/{}", keys::status(&far.run))];
            keys_to_delete.extend(
                self.with_stage(|objects| {
                    objects.list(&format!("{stage}/{}/", keys::run(&far.run)))
                })?
                .into_iter()
                .map(|item| item.key),
            );
            self.with_stage(|objects| objects.delete(&keys_to_delete))?;
            // The last run of a sweep takes the shared objects with it.
            let others = format!("{stage}/{}-", keys::run(&far.submission));
            if far.task.is_none() || self.with_stage(|objects| objects.list(&others))?.is_empty() {
                self.with_stage(|objects| {
                    objects.delete(&[format!("{stage}/{}", keys::order(&far.submission))])
                })?;
            }
            self.memory().forget(&far.run);
        }
        Ok(())
    }

    /// Deletes a job. The service deletes only jobs that it has finalized, which may take a moment.
    fn delete_job(&self, at: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let reply = self.cloud.call(&Call::delete(at))?;
            match reply.status {
                200..=299 | 404 => return Ok(()),
                409 if begun.elapsed() < DELETE_TIMEOUT => {
                    std::thread::sleep(DELETE_RETRY_INTERVAL);
                }
                _ => return Err(refusal("the job cannot be deleted", &reply)),
            }
        }
    }
}
