//! An error, for programs.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::Error;

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
    /// The key of the job file that it is about: `resources.time`. Absent if it is about none, or
    /// that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The line of the job file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column of the job file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let kind = error.kind();
        let about = error.subject().cloned().unwrap_or_default();
        // Line 0 stands for a place that is no file: a variable or an option.
        let place = about.place.filter(|(line, _)| *line > 0);
        Self {
            error: kind.word(),
            message: error.to_string(),
            hints: error.hints().to_vec(),
            exit_code: kind.exit_code(),
            refusal: kind.refusal(),
            key: about.key,
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
        }
    }
}
