//! The daemon's orders to a far cluster's thread, and the thread's reports to the daemon.

use std::sync::Arc;
use towline_core::change::Change;
use towline_core::cluster::{RunRef, RunReport};
use towline_core::plan::Plan;
use towline_core::{Result, RunId};
use towline_wire::daemon::{Refusal, Reply};

/// An order to a cluster's thread.
#[derive(Debug)]
pub enum Order {
    /// Sends a submission, again and again until the cluster accepts or refuses it.
    Submit {
        plan: Arc<Plan>,
        /// It may have been tried before.
        again: bool,
    },
    /// Watches these runs from now on.
    Watch {
        runs: Vec<RunRef>,
    },
    Cancel {
        runs: Vec<RunRef>,
    },
    /// Stops watching these runs, because they have ended.
    Unwatch {
        runs: Vec<RunId>,
    },
    /// Keeps the logs of a run up to date here while a client follows them.
    Follow {
        run: RunRef,
        on: bool,
    },
    /// Fetches the new bytes of a run's logs, then answers.
    Logs {
        run: RunRef,
        connection: u64,
    },
    /// The client has hung up: its logs need not be fetched.
    Abandon {
        connection: u64,
    },
    /// Looks now, whatever the interval.
    Look {
        connection: u64,
    },
    Explain {
        run: RunRef,
        connection: u64,
    },
    Forget {
        runs: Vec<RunRef>,
    },
    /// Changes runs that wait.
    Change {
        runs: Vec<RunRef>,
        change: Change,
        /// The runs that cannot be changed, for the answer.
        refused: Vec<(RunId, Refusal)>,
        connection: u64,
    },
}

impl Order {
    /// The client that waits for the answer.
    pub const fn connection(&self) -> Option<u64> {
        match self {
            Self::Logs { connection, .. }
            | Self::Look { connection }
            | Self::Explain { connection, .. }
            | Self::Change { connection, .. } => Some(*connection),
            _ => None,
        }
    }
}

/// A report of a cluster's thread to the daemon.
#[derive(Debug)]
pub enum Report {
    /// The code has arrived; from now on the scheduler may have the job.
    Staged {
        submission: RunId,
    },
    Submitted {
        submission: RunId,
        /// Its runs, with their names on the cluster.
        result: Result<Vec<RunRef>>,
    },
    /// The cluster refused to cancel these, and why.
    NotCancelled {
        runs: Vec<(RunId, String)>,
    },
    /// These never reached the cluster, and never will.
    Withdrawn {
        runs: Vec<RunId>,
    },
    Observed {
        reports: Vec<RunReport>,
    },
    /// The cluster has changed these runs, and refused to change the others.
    Changed {
        done: Vec<RunId>,
        refused: Vec<(RunId, Refusal)>,
        change: Change,
        connection: u64,
    },
    /// The look that was ordered is done; its reports were sent before this one.
    Looked {
        connection: u64,
    },
    /// The answer for a client that waits.
    Answered {
        connection: u64,
        reply: Box<Reply>,
    },
}
