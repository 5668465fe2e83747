//! The daemon's orders to a far cluster's thread, and the thread's messages to the daemon.

use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use towline_core::cluster::{RunRef, RunReport};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::{Result, RunId};
use towline_wire::daemon::Reply;

pub(super) type Replies = UnboundedSender<Reply>;

/// An order to a cluster's thread.
pub(in super::super) enum Order {
    /// Sends a submission, again and again until the cluster accepts or refuses it.
    Submit {
        plan: Arc<Plan>,
        secrets: SecretSet,
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
        replies: Replies,
    },
    /// Looks now, whatever the interval.
    Look {
        replies: Replies,
    },
    Explain {
        run: RunRef,
        replies: Replies,
    },
    Forget {
        runs: Vec<RunRef>,
    },
    /// The cluster has reported a change by itself.
    Changed,
    Leave,
}

/// A message of a cluster's thread to the daemon.
pub(in super::super) enum Word {
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
    /// The look that was ordered is done; its reports were sent before this message.
    Looked {
        replies: Replies,
    },
}
