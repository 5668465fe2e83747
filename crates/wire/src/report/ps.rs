//! The answer of `tow ps --remote`. Without it, `tow ps` prints [`super::run::Runs`].

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;
use towline_core::cluster::KnownJob;
use towline_core::time::Moment;

/// The jobs that a cluster itself knows, of all users.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RemoteJobs {
    /// The jobs, in the cluster's order.
    pub jobs: Vec<RemoteJob>,
}

/// A job that a cluster knows, submitted by any tool on any machine.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RemoteJob {
    /// Its run id, if it is a run of `tow` and of this user.
    pub run: Option<RunId>,
    /// The cluster's own id of it.
    pub job: Option<String>,
    /// Its name there.
    pub name: String,
    /// The user who submitted it.
    pub user: String,
    /// Our word for its state, if the cluster's word has a meaning here.
    pub state: Option<String>,
    /// The cluster's word for its state; null if the cluster has forgotten the job.
    pub word: Option<String>,
    /// Why it waits, in the cluster's own words.
    pub reason: Option<String>,
    /// The number of its nodes.
    pub nodes: u32,
    /// Whether it has ended.
    pub ended: bool,
    /// When it was submitted, in milliseconds since 1970.
    pub created: Option<Moment>,
    /// Whether the history here has it.
    pub here: bool,
}

impl RemoteJob {
    /// A job, and whether the history here has it.
    pub fn new(job: KnownJob, here: bool) -> Self {
        Self {
            run: job.run,
            job: job.job,
            name: job.name,
            user: job.user,
            state: job.state,
            word: job.word,
            reason: job.reason,
            nodes: job.nodes,
            ended: job.ended,
            created: job.created,
            here,
        }
    }
}
