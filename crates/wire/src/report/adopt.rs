//! The answer of `tow adopt`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// What the history here has from now on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Adopted {
    /// The id of the run or of the sweep.
    pub id: RunId,
    /// The ids of its runs.
    pub runs: Vec<RunId>,
}
