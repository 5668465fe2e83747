//! Slurm, as a far cluster: every question goes over the line to `tow __site`.

use super::backend::{SlurmBackend, unexpected};
use crate::far::{BlobBytes, FarCluster};
use std::sync::PoisonError;
use towline_core::cluster::LogSource;
use towline_core::cluster::{Explanation, FileEntry, KnownJob, LogLength, Observed, RunRef};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::PrivateSecrets;
use towline_wire::site::{SiteReply, SiteRequest};
use towline_wire::stage::{ORDER_VERSION, Order, Sent};

/// What ranks get between SIGTERM and SIGKILL, where the site allows it.
const GRACE_MILLIS: u64 = 10_000;
/// Of the site's own patience, this much is left for writing down the end.
const RESERVE_MILLIS: u64 = 2_000;
/// Seconds between collections of what a run writes.
const COLLECT_EVERY: u64 = 60;

/// The answer that a question has, or none of ours.
macro_rules! answer {
    ($cluster:expr, $request:expr, $pattern:pat => $value:expr) => {
        match $cluster.ask(&$request)? {
            $pattern => Ok($value),
            _ => Err(unexpected()),
        }
    };
}

impl FarCluster for SlurmBackend {
    fn connect(&self, may_ask: bool) -> Result<()> {
        self.transport().connect(may_ask)
    }
    fn is_open(&self) -> bool {
        self.link
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
    fn hang_up(&self) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>> {
        answer!(self, SiteRequest::Missing { blobs }, SiteReply::Missing { blobs } => blobs)
    }
    fn keep(&self, blobs: &mut BlobBytes<'_>) -> Result<()> {
        self.with_link(|link| link.keep_all(blobs))
    }

    fn submit_plan(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>> {
        let site = self.site()?;
        let grace = GRACE_MILLIS.min(
            (site.kill_wait * 1000)
                .saturating_sub(RESERVE_MILLIS)
                .max(1000),
        );
        let order = Order {
            version: ORDER_VERSION,
            plan: plan.clone(),
            grace_millis: grace,
            collect_every: COLLECT_EVERY,
            signals_reach_all: site.signals_reach_all,
        };
        let sent = Sent {
            order,
            secrets: PrivateSecrets(secrets.clone()),
        };
        let job: String = answer!(self, SiteRequest::Submit(Box::new(sent)), SiteReply::Submitted { job } => job)?;
        let native = |run: &RunId| {
            RunRef::of(run)
                .task
                .map_or_else(|| job.clone(), |task| format!("{job}_{task}"))
        };
        Ok(plan.runs.iter().map(|run| native(&run.id)).collect())
    }
    fn observe_runs(&self, runs: &[RunRef], ask: bool) -> Result<Observed> {
        answer!(self, SiteRequest::Observe { runs: runs.to_vec(), ask }, SiteReply::Observed(observed) => observed)
    }
    fn cancel_runs(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>> {
        answer!(self, SiteRequest::Cancel { runs: runs.to_vec() }, SiteReply::Done => Vec::new())
    }
    fn explain(&self, run: &RunRef) -> Result<Explanation> {
        answer!(self, SiteRequest::Explain { run: run.clone() }, SiteReply::Explained(explained) => explained)
    }
    fn forget_runs(&self, runs: &[RunRef]) -> Result<()> {
        answer!(self, SiteRequest::Forget { runs: runs.to_vec() }, SiteReply::Done => ())
    }

    fn log_lengths(&self, run: &RunRef) -> Result<Vec<LogLength>> {
        answer!(self, SiteRequest::Logs { run: run.run.clone() }, SiteReply::Logs(logs) => logs)
    }
    fn log_bytes(
        &self,
        run: &RunRef,
        attempt: u32,
        source: LogSource,
        offset: u64,
        most: u64,
    ) -> Result<(Vec<u8>, Option<u64>)> {
        self.fetch(&SiteRequest::Log {
            run: run.run.clone(),
            attempt,
            source,
            offset,
            most,
        })
    }
    fn list_files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        answer!(self, SiteRequest::List { run: run.run.clone(), path: path.to_owned() }, SiteReply::Listed(entries) => entries)
    }
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        self.fetch(&SiteRequest::Read {
            run: run.run.clone(),
            path: path.to_owned(),
            offset,
            most,
        })
        .map(|(bytes, _)| bytes)
    }

    fn known_jobs(&self) -> Result<Vec<KnownJob>> {
        answer!(self, SiteRequest::Known, SiteReply::Known(jobs) => jobs)
    }
    fn plan_of(&self, submission: &RunId, _: Option<&str>) -> Result<Option<Plan>> {
        answer!(self, SiteRequest::Plan { submission: submission.clone() }, SiteReply::Plan(plan) => plan.map(|plan| *plan))
    }
}
