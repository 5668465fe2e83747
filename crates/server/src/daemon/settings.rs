//! What a daemon is told of itself when it begins.

use std::time::Duration;
use towline_core::time::Moment;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The id of the machine's boot. Names of runners begin with it.
    pub boot: String,
    pub pid: u32,
    pub host: String,
    pub begun: Moment,
    /// How long a run that is told to end may take.
    pub grace_millis: u64,
    /// How long an idle daemon stays.
    pub idle_time: Duration,
}
