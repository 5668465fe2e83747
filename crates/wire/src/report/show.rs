//! The answers of `tow show`.

use super::run::{Attempt, Run};
use super::time::Time;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;
use towline_core::counts::PhaseCounts;
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
    /// The agent that submitted it for the user. Absent if the user did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
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

/// Everything that the runs of a sweep share, and the runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShownSweep {
    /// The sweep.
    pub id: RunId,
    /// Its name, as the job gives it. Values of the sweep may stand in it as `${{…}}`.
    pub name: String,
    /// How many runs are in which state.
    pub states: PhaseCounts,
    /// The command in one line, with `${{…}}` for the values.
    pub command: String,
    /// The cluster that it was submitted to.
    pub cluster: String,
    /// `premium`, `standard` or `basic`.
    pub tier: String,
    /// The experiment that it belongs to.
    pub experiment: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// The number of GPUs of each run, on all its nodes together.
    pub gpus: u32,
    /// The number of nodes of each run.
    pub nodes: u32,
    /// The number of ranks of each run.
    pub ranks: u32,
    /// When it was submitted.
    pub created: Time,
    /// The earliest start of a run's latest attempt.
    pub started: Option<Time>,
    /// When the last run ended; null until all have.
    pub ended: Option<Time>,
    /// The run or sweep that this one repeats.
    pub resubmits: Option<RunId>,
    /// The folder that it was submitted from.
    pub workdir: Option<String>,
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
    /// The agent that submitted it for the user. Absent if the user did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its runs, in their order.
    pub runs: Vec<Run>,
    /// With `--events`, the events of its runs, run after run. Absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Recorded>,
}
