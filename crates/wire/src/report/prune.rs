//! The answer of `tow prune`.

use super::time::Time;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// The old runs that `tow prune` removes, or would remove.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Pruned {
    /// The runs.
    pub runs: Vec<RunId>,
    /// The bytes that their folders take.
    pub bytes: u64,
    /// Whether they were removed; false for a plan.
    pub done: bool,
    /// Runs that stay because their cluster cannot be told to drop them. Absent if no run is old
    /// enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Vec<RunId>>,
    /// The runs again, each with its end.
    pub details: Vec<OldRun>,
    /// Clusters that keep something of the runs, which goes too.
    pub clusters: Vec<String>,
}

/// A run that is old enough to be removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OldRun {
    /// The run.
    pub id: RunId,
    /// When it ended.
    pub ended: Time,
    /// The sweep that it belongs to. Absent if it is no run of a sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<RunId>,
}
