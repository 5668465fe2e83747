//! Ending jobs. The service may not know one yet that it has taken: then it is told again.

use super::backend::AzureBackend;
use super::client::{BATCH, refusal, url};
use super::memory::Grounds;
use super::observe::job_name;
use super::report::JobView;
use super::state::NativeState;
use serde_json::Value;
use std::collections::HashMap;
use towline_core::Result;
use towline_core::cloud::{Call, Reply};
use towline_host::crash;
use towline_wire::crew::keys;
use towline_wire::site::FarRun;

/// Milliseconds until it is looked again whether a job is there.
const AGAIN: u64 = 500;

impl AzureBackend {
    /// The word is left for the runner first, so that it knows why it is ended.
    pub(super) fn cancel_all(&self, runs: &[FarRun]) -> Result<()> {
        for far in runs {
            if let Grounds::Stage(stage) = self.grounds(far)? {
                self.with_stage(|objects| objects.put(&format!("{stage}/{}", keys::cancel(&far.run)), b"", false))?;
            }
        }
        crash::pass("azureml.cancel.noted");
        let replies = self.ask_to_end(runs)?;
        for (far, reply) in runs.iter().zip(replies) {
            match reply.status {
                200..=299 => {
                    self.memory().unheard.remove(&far.run);
                }
                // Over already; or not known yet, or in the way of something: the next look tells.
                400 | 404 | 409 => {
                    self.memory().unheard.insert(far.run.clone());
                }
                _ => return Err(refusal("the job cannot be cancelled", &reply)),
            }
        }
        crash::pass("azureml.cancel.done");
        Ok(())
    }

    fn ask_to_end(&self, runs: &[FarRun]) -> Result<Vec<Reply>> {
        let site = self.site()?;
        let cancel = |far: &FarRun| Call::post(url(self.cloud(), &format!("{}/jobs/{}/cancel", site.scope.id(), job_name(far))), Value::Null).repeatable();
        let calls: Vec<Call> = runs.iter().map(cancel).collect();
        calls.chunks(BATCH).flat_map(|calls| self.cloud.call_all(calls)).collect()
    }

    /// Tells the service once more to end what it did not know when it was told.
    pub(super) fn cancel_unheard(&self, runs: &[FarRun], jobs: &HashMap<String, JobView>, settles_in: &mut Option<u64>) -> Result<()> {
        let unheard: Vec<FarRun> = {
            let mut memory = self.memory();
            let is_over = |far: &FarRun| jobs.get(job_name(far)).is_some_and(|job| job.state.is_final() || job.state == NativeState::Cancelling);
            memory.unheard.retain(|run| !runs.iter().any(|far| far.run == *run && is_over(far)));
            runs.iter().filter(|far| memory.unheard.contains(&far.run)).cloned().collect()
        };
        if unheard.is_empty() {
            return Ok(());
        }
        *settles_in = Some(settles_in.map_or(AGAIN, |known| known.min(AGAIN)));
        let there: Vec<FarRun> = unheard.into_iter().filter(|far| jobs.contains_key(job_name(far))).collect();
        let replies = self.ask_to_end(&there)?;
        let told: Vec<_> = there.iter().zip(replies).filter(|(_, reply)| reply.is_good()).map(|(far, _)| &far.run).collect();
        self.memory().unheard.retain(|run| !told.contains(&run));
        Ok(())
    }
}
