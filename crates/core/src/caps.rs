//! What a backend can do. Everything defaults to "no": what is not said is not promised.

use serde::Serialize;

/// Capabilities of one cluster kind, asked before a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Caps {
    /// `submit` writes the history itself, atomically with the queue, idempotent on the run id.
    pub records: bool,
    /// Preempted runs come back by themselves.
    pub preempts: bool,
    pub time_limit: bool,
    pub several_nodes: bool,
    pub containers: bool,
    pub io: bool,
    pub snapshots: bool,
    pub secrets: bool,
    /// Nodes are kept after a failure.
    pub hold: bool,
    /// A shell in a running job.
    pub connect: bool,
    pub live_logs: bool,
    /// `instance_type`, `account` and `native` mean something there.
    pub native_words: bool,
    /// `location` does.
    pub locations: bool,
    /// A run can be somebody: `identity`.
    pub identity: bool,
    /// A run has its nodes to itself, with all their GPUs, whether it asks for them or not.
    pub whole_nodes: bool,
}
