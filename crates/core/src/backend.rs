//! The seam to a cluster. Few methods, no runtime named; every implementation passes the same
//! contract suite, chosen by its [`Caps`].

use crate::caps::Caps;
use crate::cluster::{Cursor, Facts, LogChunk};
use crate::job::Job;
use crate::plan::{Plan, PlannedRun, Request};
use crate::redact::SecretSet;
use crate::resolve::Resolved;
use crate::state::RunState;
use crate::{Result, RunId};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// What the cluster calls a run. Found again by the run id, never by the user's name for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handle {
    pub run: RunId,
    /// The cluster's own id for it.
    pub native: String,
}

/// What a cluster says about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    /// Its state, with the cluster's own word beside ours.
    Known {
        state: Box<RunState>,
        native: String,
    },
    /// An authoritative "never heard of it". Not the same as an error, which means nothing is
    /// known.
    Gone,
}

/// What was staged before a submission. Empty until code and data travel.
#[derive(Debug, Clone, Default)]
pub struct Staged {}

/// What a request is made of.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Of the single run, or the one a sweep's runs share.
    pub id: &'a RunId,
    pub runs: &'a [PlannedRun],
    pub job: &'a Job,
    pub resolved: &'a Resolved,
}

/// One kind of cluster. All calls may be repeated.
#[async_trait]
pub trait Backend: Send + Sync {
    fn kind(&self) -> &'static str;
    fn name(&self) -> &str;
    fn caps(&self) -> Caps;

    /// Asks the cluster what it has.
    async fn probe(&self) -> Result<Facts>;

    /// The exact thing that will be sent, or why this job can never run here. Pure.
    fn render(&self, asked: &Asked<'_>, facts: &Facts) -> Result<Request>;

    /// Submits every run of the plan as one call. Idempotent on the run ids: a second call finds
    /// the first one's work. On error, [`Self::find`] tells whether something was created.
    async fn submit(
        &self,
        plan: &Plan,
        secrets: &SecretSet,
        staged: &Staged,
    ) -> Result<Vec<Handle>>;

    /// The handle of a run by its id, if the cluster ever accepted it.
    async fn find(&self, run: &RunId) -> Result<Option<Handle>>;

    /// One query whatever the number of handles. An error means nothing is known of any.
    async fn observe(&self, handles: &[Handle]) -> Result<Vec<Observation>>;

    /// The bytes of a log from `from` on, at most `most` of them; none yet is an empty chunk.
    async fn logs(&self, handle: &Handle, from: &Cursor, most: usize) -> Result<LogChunk>;

    /// Asks for the end. Fine if already ended or gone.
    async fn cancel(&self, handles: &[Handle]) -> Result<()>;

    /// Drops what the cluster keeps of an ended run.
    async fn forget(&self, handle: &Handle) -> Result<()>;
}
