//! Explains why a run waits, or how the service describes it.

use super::super::state::NativeState;
use super::AzureCluster;
use towline_core::Result;
use towline_core::cluster::Explanation;
use towline_core::cluster::RunRef;
use towline_core::state::Native;
impl AzureCluster {
    pub(super) fn explain_run(&self, run: &RunRef) -> Result<Explanation> {
        let Some(job) = self.job(run)? else {
            return Ok(Explanation {
                native: None,
                text: "the service has no such job".to_owned(),
                next: None,
                forever: false,
            });
        };
        let site = self.look()?;
        let text = match job.state {
            NativeState::Waiting if job.word == "Paused" => {
                "the platform has paused it and resumes it when there is room".to_owned()
            }
            NativeState::Waiting => {
                super::super::explain::waiting(&job, self.order(run)?.as_ref(), &site)
            }
            NativeState::Unknown => format!(
                "the service calls it {}: nothing is known of it at the moment",
                job.word
            ),
            _ => format!("the service calls it {}", job.word),
        };
        let url = job.url.clone().unwrap_or_else(|| site.portal(&job.name));
        let native = Native {
            id: job.name,
            word: job.word,
            url: Some(url.clone()),
            ..Native::default()
        };
        Ok(Explanation {
            native: Some(native),
            text,
            next: Some(format!("its page: {url}")),
            forever: false,
        })
    }
}
