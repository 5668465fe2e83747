//! What `tow logs` prints, one document per line.

use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use towline_core::RunId;

/// A line of a log. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogLine<'a> {
    /// The run that wrote it.
    pub run: Cow<'a, RunId>,
    /// The attempt that wrote it.
    pub attempt: u32,
    /// The rank that wrote it. Absent for a line of set-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The node whose set-up wrote it. Absent for a line of a rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_up_node: Option<u32>,
    /// The line, without its end.
    pub line: Cow<'a, str>,
    /// The line is longer than 4 MiB and goes on in the next document. Absent if it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}
