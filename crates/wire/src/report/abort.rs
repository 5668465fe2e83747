//! The answer of `tow abort`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// The runs that `tow abort` found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Aborted {
    /// The runs that are being ended; with `--wait`, that have ended.
    pub cancelling: Vec<RunId>,
    /// The runs that had ended before.
    pub already_ended: Vec<RunId>,
}
