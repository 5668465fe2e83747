//! An error, for programs.

use schemars::JsonSchema;
use serde::Serialize;

/// An error. It is printed on stderr, with nothing on stdout.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Failure {
    /// A word of the exit codes: `usage`, `not_found`, …
    pub error: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hints: Vec<String>,
    /// The code that `tow` exits with.
    pub exit_code: u8,
    /// Why it was `refused`, where that is known: `denied`, `unsupported`, `too_large`, `conflict`
    /// or `no_room`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<&'static str>,
}
