//! The answer of `tow show`.

use super::run::{Attempt, Run};
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::event::Recorded;
use towline_core::job::Job;
use towline_core::state::Native;

/// Everything that is known of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Shown {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// The folder of the run, on the machine that has it.
    pub folder: String,
    /// The folder that it was submitted from.
    pub workdir: Option<String>,
    /// Its own tree of code; null if it runs in the folder that it was submitted from.
    pub code: Option<String>,
    /// The id of the snapshot that its code is from.
    pub snapshot: Option<String>,
    /// The Git commit that was checked out.
    pub commit: Option<String>,
    /// Whether tracked files differed from the commit; null if that is not known.
    pub dirty: Option<bool>,
    /// The names of its secrets.
    pub secrets: Vec<String>,
    /// The job that was asked for.
    pub job: Option<Job>,
    /// The cluster's own words for it. Absent if the cluster has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<Box<Native>>,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// The files that hold its logs on this machine.
    pub logs: Vec<String>,
    /// Its events, oldest first.
    pub events: Vec<Recorded>,
}
