//! The logs of a run, and positions in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What writes a log.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// A rank.
    Rank(u32),
    /// The set-up of one node.
    SetUp(u32),
}

/// A position in one log: nothing before it is sent again.
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
    /// The length of the whole log, if it is known.
    pub length: Option<u64>,
}

impl LogBytes {
    /// The length of a log that is shorter than the reader's position: the job has truncated it.
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
