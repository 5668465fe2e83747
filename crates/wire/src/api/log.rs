//! Logs by line and by offset, whatever their size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use towline_core::RunId;
use towline_core::cluster::LogSource;

/// Asks which logs a run has.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogsList {
    /// The run.
    pub run: RunId,
}

/// The logs of a run.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Logs {
    /// The logs, by attempt, set-up before ranks.
    pub logs: Vec<Log>,
}

/// A log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Log {
    /// The attempt that wrote it.
    pub attempt: u32,
    /// The rank or the set-up that wrote it.
    pub source: LogSource,
    /// Its length in bytes.
    pub bytes: u64,
}

/// One log of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub struct LogRef {
    /// The run.
    pub run: RunId,
    /// The attempt.
    pub attempt: u32,
    /// The rank or the set-up.
    pub source: LogSource,
}

impl LogRef {
    /// A log of a run.
    pub fn new(run: &RunId, attempt: u32, source: LogSource) -> Self {
        Self {
            run: run.clone(),
            attempt,
            source,
        }
    }
}

/// Asks for lines of a log.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogsRead {
    /// The run.
    pub run: RunId,
    /// The attempt.
    pub attempt: u32,
    /// The rank or the set-up.
    pub source: LogSource,
    /// Where to begin.
    pub from: From,
    /// At most this many lines [default: 200; at most 5,000].
    #[serde(default)]
    pub lines: Option<u32>,
}

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The line with this number, from 0.
    Line(u64),
    /// The line that holds this byte.
    Byte(u64),
    /// So many lines before the end of the log. The answer goes to its end.
    End(u32),
}

/// Lines of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lines {
    /// The number of the first line, from 0.
    pub first: u64,
    /// The offset at which it begins.
    pub begin: u64,
    /// The offset behind the last line: `from: {"byte": …}` goes on there.
    pub end: u64,
    /// The lines, without their ends. Bytes that are not UTF-8 are replaced.
    pub lines: Vec<String>,
    /// The numbers of lines here that are cut because they are longer than 64 KiB. Absent if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<u64>,
    /// The number of lines of the whole log, an unfinished last one included.
    pub total: u64,
    /// The length of the log in bytes.
    pub bytes: u64,
    /// The last line of the log has no end yet.
    pub is_open: bool,
}

/// Asks where a text is in a log.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogsSearch {
    /// The run.
    pub run: RunId,
    /// The attempt.
    pub attempt: u32,
    /// The rank or the set-up.
    pub source: LogSource,
    /// The text, or the regular expression.
    pub pattern: String,
    /// It is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Capitals differ from small letters.
    #[serde(default)]
    pub case: bool,
    /// Report the numbers of at most this many lines [default: 1,000; at most 10,000].
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Where a text is in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Matches {
    /// The number of lines that match.
    pub count: u64,
    /// The numbers of the first of them, from 0.
    pub lines: Vec<u64>,
    /// The number of lines that were searched.
    pub searched: u64,
}

/// Asks for the first line of a log that shows an error.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogsError {
    /// The run.
    pub run: RunId,
    /// The attempt.
    pub attempt: u32,
    /// The rank or the set-up.
    pub source: LogSource,
}

/// The first error that a log shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirstError {
    /// The number of the line, from 0; null if no line shows one.
    pub line: Option<u64>,
}

impl LogsRead {
    /// The log that is asked about.
    pub fn log(&self) -> LogRef {
        LogRef::new(&self.run, self.attempt, self.source)
    }
}

impl LogsSearch {
    /// The log that is asked about.
    pub fn log(&self) -> LogRef {
        LogRef::new(&self.run, self.attempt, self.source)
    }
}

impl LogsError {
    /// The log that is asked about.
    pub fn log(&self) -> LogRef {
        LogRef::new(&self.run, self.attempt, self.source)
    }
}
