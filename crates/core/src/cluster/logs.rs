//! Which log, and where in it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    Rank(u32),
    /// The set-up of one node.
    SetUp(u32),
}

/// A place in one log: nothing before it is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub attempt: u32,
    pub source: LogSource,
    pub offset: u64,
}

/// Bytes of a log from a cursor on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogChunk {
    pub bytes: Vec<u8>,
    /// The log is shorter than the cursor: the job truncated it.
    pub truncated_to: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLength {
    pub attempt: u32,
    pub source: LogSource,
    pub length: u64,
}
