//! The seam to a cluster. Few methods, no runtime named; every implementation passes the same
//! contract suite, chosen by its [`Caps`].

use crate::caps::Caps;
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

/// What a cluster offers, as far as it could be asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Facts {
    pub nodes: Vec<NodeFacts>,
    /// What the user should know: "GPUs found through nvidia-smi", "cgroups not delegated".
    pub notes: Vec<String>,
}

impl Facts {
    /// The most GPUs one node has.
    pub fn gpus_per_node(&self) -> u32 {
        self.nodes
            .iter()
            .map(|node| u32::try_from(node.gpus.len()).unwrap_or(u32::MAX))
            .max()
            .unwrap_or(0)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NodeFacts {
    pub name: String,
    /// The cluster's own word for how it is: `idle`, `drained`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Who runs there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    pub cpus: u32,
    pub cpus_used: u32,
    pub memory: u64,
    pub memory_used: u64,
    pub gpus: Vec<GpuFacts>,
}

/// One GPU and who has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuFacts {
    /// What goes into `CUDA_VISIBLE_DEVICES` or `ROCR_VISIBLE_DEVICES`.
    pub index: u32,
    pub name: String,
    pub make: GpuMake,
    pub memory: u64,
    #[serde(default)]
    pub memory_used: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Somebody else's processes keep it busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_with: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuMake {
    #[default]
    Nvidia,
    Amd,
    /// Only declared in the configuration.
    Declared,
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

/// A place in one log: nothing before it is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub attempt: u32,
    pub source: LogSource,
    pub offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    Rank(u32),
    /// The set-up of one node.
    SetUp(u32),
}

/// Bytes of a log from a cursor on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogChunk {
    pub bytes: Vec<u8>,
    /// The log is shorter than the cursor: the job truncated it.
    pub truncated_to: Option<u64>,
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
