//! The records of an attempt, written by the processes that carry it: its claim, and its end.

use crate::reason::Ending;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

/// One start of a scheduler's job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStart {
    /// The scheduler's id, also that of an array's task: `123`.
    pub job: String,
    /// How often the scheduler had started this job before.
    pub restarts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub by: JobStart,
    pub at: Moment,
    /// Host names by node.
    pub hosts: Vec<String>,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub at: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub at: Moment,
    pub until: Moment,
    pub ending: Ending,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub at: Moment,
    pub ending: Ending,
}
