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

/// Bytes of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogBytes {
    pub bytes: Vec<u8>,
    /// Of the whole log, where that is known.
    pub length: Option<u64>,
}

impl LogBytes {
    /// The length of a log that is shorter than where the reader stands: the job emptied it.
    pub fn truncated_to(&self, offset: u64) -> Option<u64> {
        self.length.filter(|length| *length < offset)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLength {
    pub attempt: u32,
    pub source: LogSource,
    pub length: u64,
}
