//! A job file before it is submitted: every problem at once.

use crate::report::submit::DryRun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks what is wrong with a job file, and what would be sent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobCheck {
    /// The text of the job file.
    pub input: String,
    /// The cluster, if not the one that the file names.
    #[serde(default)]
    pub cluster: Option<String>,
}

/// What is wrong with a job file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Checked {
    /// The problems. With any, the job would not be accepted.
    pub problems: Vec<Problem>,
    /// The plan; null if there are problems.
    pub plan: Option<DryRun>,
}

/// One thing that is wrong with a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The key that it is about: `resources.time`; null if it is about none, or that is not known.
    pub key: Option<String>,
    /// The line, from 1; null if that is not known.
    pub line: Option<usize>,
    /// The column, from 1; null if that is not known.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hints: Vec<String>,
}
