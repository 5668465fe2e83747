//! The answers of `tow daemon`.

use crate::daemon::Status;
use schemars::JsonSchema;
use serde::Serialize;

/// Whether the daemon is there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DaemonStatus {
    /// Whether it is running.
    pub running: bool,
    /// What it says of itself. Absent if it is not running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// Whether the daemon was stopped.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DaemonStopped {
    /// Whether there was one to stop.
    pub stopped: bool,
    /// Its process, if it did not answer and was killed. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<i32>,
}
