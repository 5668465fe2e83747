//! The answer of `tow doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// Everything that was checked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// Whether all checks passed.
    pub ok: bool,
    /// The checks.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Check {
    /// What was checked: `history`, `cluster lab`, …
    pub name: String,
    /// Whether it passed.
    pub ok: bool,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub hints: Vec<String>,
    /// The exit code of this check alone: 0 if it passed.
    pub exit_code: u8,
}
