//! The answer of `tow resubmit`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// What was submitted again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Resubmitted {
    /// One for each run or sweep that was named, in that order.
    pub resubmitted: Vec<Repeat>,
}

/// A run or a sweep, and the one that repeats it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Repeat {
    /// The id of the old one.
    pub from: RunId,
    /// The id of the new one.
    pub id: RunId,
    /// The ids of the new one's runs.
    pub runs: Vec<RunId>,
}
