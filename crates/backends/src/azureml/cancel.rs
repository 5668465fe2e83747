//! Cancels jobs. The service may not know a job yet that it has accepted: then the cancel is sent
//! again.

use super::client::{CALL_BATCH, refusal, url};
use super::cluster::AzureCluster;
use super::memory::ObjectPlace;
use super::observe::{job_name, later};
use super::report::JobView;
use super::state::NativeState;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use towline_core::cloud::{Call, Reply};
use towline_core::cluster::RunRef;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_host::crash;
use towline_wire::crew::keys;

/// How long to wait before checking again whether a job exists.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

impl AzureCluster {
    /// Cancels runs. First leaves a note in the stage for each runner, so that the runner knows why
    /// it is ended. A failed cancel does not stop the others, and a cancel that was sent is not
    /// repeated. Returns the runs whose cancel was refused, and why.
    pub(super) fn cancel_all(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>> {
        let (mut failed, mut refused) = (Ok(()), Vec::new());
        let mut noted = Vec::new();
        for far in runs {
            if self.memory().was_told(&far.run) {
                continue;
            }
            match self.note_cancel(far) {
                Err(error) if error.kind() == ErrorKind::Unreachable => {
                    failed = failed.and(Err(error));
                }
                // We may not write into a colleague's stage. The job ends all the same, and the
                // service says why.
                _ => noted.push(far.clone()),
            }
        }
        crash::pass("azureml.cancel.noted");
        for (far, reply) in noted.iter().zip(self.ask_to_end(&noted)?) {
            let reply = match reply {
                Ok(reply) => reply,
                Err(error) => {
                    failed = failed.and(Err(error));
                    continue;
                }
            };
            match reply.status {
                200..=299 => self.memory().heard(&far.run),
                // The job is over, or not known yet, or in conflict with another change: the next
                // look shows which.
                400 | 404 | 409 => self.memory().not_heard(&far.run),
                _ => match refusal(
                    &format!("job `{}` cannot be cancelled", job_name(far)),
                    &reply,
                ) {
                    error if error.kind() == ErrorKind::Unreachable => {
                        failed = failed.and(Err(error));
                    }
                    error => refused.push((far.run.clone(), error)),
                },
            }
        }
        crash::pass("azureml.cancel.done");
        // Refusals are reported only after all other cancels were sent, because a reported run is
        // not cancelled again.
        failed.map(|()| refused)
    }

    fn note_cancel(&self, far: &RunRef) -> Result<()> {
        match self.object_place(far)? {
            ObjectPlace::Stage(stage) => self
                .with_stage(|objects| {
                    objects.put(&format!("{stage}/{}", keys::cancel(&far.run)), b"", false)
                })
                .map(drop),
            ObjectPlace::Foreign => Ok(()),
        }
    }

    fn ask_to_end(&self, runs: &[RunRef]) -> Result<Vec<Result<Reply>>> {
        let site = self.site()?;
        let cancel = |far: &RunRef| {
            Call::post(
                url(
                    self.cloud(),
                    &format!("{}/jobs/{}/cancel", site.scope.id(), job_name(far)),
                ),
                Value::Null,
            )
            .repeatable()
        };
        let calls: Vec<Call> = runs.iter().map(cancel).collect();
        Ok(calls
            .chunks(CALL_BATCH)
            .flat_map(|calls| self.cloud.call_all(calls))
            .collect())
    }

    /// Sends the cancel again for jobs that the service did not know the first time.
    pub(super) fn cancel_unacknowledged(
        &self,
        runs: &[RunRef],
        jobs: &HashMap<String, JobView>,
        settles_in: &mut Option<u64>,
    ) -> Result<()> {
        let unacknowledged: Vec<RunRef> = {
            let mut memory = self.memory();
            let is_over = |far: &RunRef| {
                jobs.get(job_name(far))
                    .is_some_and(|job| job.state.is_final() || job.state == NativeState::Cancelling)
            };
            for far in runs.iter().filter(|far| is_over(far)) {
                memory.unacknowledged.remove(&far.run);
            }
            let unacknowledged = runs
                .iter()
                .filter(|far| memory.unacknowledged.contains_key(&far.run));
            for far in unacknowledged.clone() {
                later(
                    memory.unacknowledged.get(&far.run).copied(),
                    RECHECK_INTERVAL,
                    settles_in,
                );
            }
            unacknowledged
                .filter(|far| jobs.contains_key(job_name(far)))
                .cloned()
                .collect()
        };
        for (far, reply) in unacknowledged.iter().zip(self.ask_to_end(&unacknowledged)?) {
            if reply?.is_good() {
                self.memory().heard(&far.run);
            }
        }
        Ok(())
    }
}
