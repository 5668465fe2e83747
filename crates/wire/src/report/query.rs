//! The answers of `tow query RUN`. Without a run, `tow query` prints [`super::run::Runs`].

use super::run::Run;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;
use towline_core::counts::PhaseCounts;

/// A run, and where its logs are now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Queried {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// The last attempt's end in one line, if it did not end well. A run that is tried again has
    /// one, too. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The files that its logs were copied to.
    pub logs: Vec<String>,
}

/// A sweep, and where the logs of its runs are now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QueriedSweep {
    /// The sweep.
    pub id: RunId,
    /// How many runs are in which state.
    pub states: PhaseCounts,
    /// Its runs, in their order.
    pub runs: Vec<Queried>,
}
