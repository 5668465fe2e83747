//! Lists of runs, a window at a time.

use crate::report::{Run, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use towline_core::RunId;
use towline_core::counts::PhaseCounts;

/// Asks for a window of a list of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunsPage {
    /// Only runs that fit.
    pub filter: RunsFilter,
    /// The order.
    pub sort: Sort,
    /// The runs of a sweep are one row.
    pub fold: bool,
    /// The number of the first row, from 0.
    pub offset: u64,
    /// At most this many rows [default: 100; at most 1,000].
    pub limit: Option<u32>,
}

/// Which runs. What is empty fits all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunsFilter {
    /// In one of these states; `active` and `ended` stand for several.
    pub states: Vec<String>,
    /// On one of these clusters.
    pub clusters: Vec<String>,
    /// Of one of these experiments.
    pub experiments: Vec<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// All of these words are in the id, the name, the command, the experiment or the tags.
    pub text: String,
    /// Of this sweep.
    pub sweep: Option<RunId>,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sort {
    /// What it goes by.
    pub by: SortKey,
    /// The largest, latest or last of the alphabet comes last.
    pub ascending: bool,
}

/// What a list goes by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortKey {
    /// When it was submitted.
    #[default]
    Created,
    /// When its latest attempt began.
    Started,
    /// When it ended.
    Ended,
    /// How long its latest attempt took, or takes.
    Took,
    /// Its name.
    Name,
    /// Its state.
    State,
    /// Its cluster.
    Cluster,
    /// Its experiment.
    Experiment,
    /// The number of its GPUs.
    Gpus,
}

/// A window of a list of runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunsWindow {
    /// The number of rows in the whole list.
    pub total: u64,
    /// How many runs of the whole list are in which state.
    pub states: PhaseCounts,
    /// The rows of the window, in order.
    pub rows: Vec<Row>,
    /// The number of the history's last event when the list was read, for the stream of events.
    pub cursor: String,
}

/// A row of a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    /// A run.
    Run(Box<Run>),
    /// The runs of a sweep that fit.
    Sweep(Box<SweepRow>),
}

/// The runs of a sweep, as one row.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SweepRow {
    /// The sweep.
    pub id: RunId,
    /// How many of its runs are in which state.
    pub states: PhaseCounts,
    /// The earliest start of a latest attempt.
    pub started: Option<Time>,
    /// When the last of them ended; null until all have.
    pub ended: Option<Time>,
    /// The first of its runs. What the runs share is told by it.
    pub first: Run,
}

/// Asks for runs by their ids.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunsGet {
    /// The ids. An id that the history does not have is left out of the answer.
    pub ids: Vec<RunId>,
}

/// The words that filters can be set to.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunsWords {
    /// The clusters that runs were submitted to.
    pub clusters: Vec<String>,
    /// The experiments, the latest first.
    pub experiments: Vec<String>,
    /// The tags, the latest first.
    pub tags: Vec<String>,
}
