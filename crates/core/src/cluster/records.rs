//! What is written down of an attempt, by those who carry it: that it was begun, by whom, and how it
//! ended.

use crate::reason::Ending;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

/// Which start of which job of the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStart {
    /// The scheduler's id, also of an array's task: `123`.
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
