//! The answer of `tow diff`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// What differs between two runs or sweeps.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Diff {
    /// The first run or sweep.
    pub one: RunId,
    /// The second run or sweep.
    pub other: RunId,
    /// What differs, in the order of names.
    pub differences: Vec<Difference>,
    /// Unified diffs of the code, one per file.
    pub changes: Vec<String>,
}

/// A fact that differs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Difference {
    /// Its name: `command`, `nodes`, `variable PATH`, `code train.py`, …
    pub what: String,
    /// Its value in the first; null if it has none.
    pub one: Option<String>,
    /// Its value in the second; null if it has none.
    pub other: Option<String>,
}
