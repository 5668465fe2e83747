//! The answer of `tow history`. With a run, it prints the run's [`Job`].

use super::time::Time;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;
use towline_core::job::Job;

/// Former submissions, newest first.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Submissions {
    /// The submissions.
    pub submissions: Vec<Submission>,
}

/// A former submission.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Submission {
    /// The id of the run or of the sweep.
    pub id: RunId,
    /// The name of the job.
    pub name: String,
    /// The cluster that it was submitted to.
    pub cluster: String,
    /// When it was submitted.
    pub created: Time,
    /// The number of its runs.
    pub runs: usize,
    /// Its command in one line.
    pub command: String,
    /// The job that was asked for.
    pub job: Job,
}
