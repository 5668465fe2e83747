//! What the daemon asks of a far cluster's thread, and what it is told.

use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use towline_core::cluster::{RunRef, RunReport};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::{Result, RunId};
use towline_wire::daemon::Reply;

pub(super) type Replies = UnboundedSender<Reply>;

/// What the daemon asks of a cluster's thread.
pub(in super::super) enum Order {
    /// Carries a submission over; repeated until the cluster says yes or no.
    Submit {
        plan: Arc<Plan>,
        secrets: SecretSet,
        /// It may have been tried before.
        again: bool,
    },
    /// From now on these are looked after.
    Watch {
        runs: Vec<RunRef>,
    },
    Cancel {
        runs: Vec<RunRef>,
    },
    /// These have ended.
    Unwatch {
        runs: Vec<RunId>,
    },
    /// Its logs are kept up to date here while somebody follows it.
    Follow {
        run: RunRef,
        on: bool,
    },
    /// Brings what is new of a run's logs, then answers.
    Logs {
        run: RunRef,
        replies: Replies,
    },
    /// Looks now, whatever the time.
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
    /// The cluster says by itself that something changed.
    Changed,
    Leave,
}

/// What a cluster's thread tells the daemon.
pub(in super::super) enum Word {
    /// The content is there; from here on the scheduler may have it.
    Staged {
        submission: RunId,
    },
    Submitted {
        submission: RunId,
        /// Its runs, with what the cluster calls them.
        result: Result<Vec<RunRef>>,
    },
    /// The cluster will not end these, and why.
    NotCancelled {
        runs: Vec<(RunId, String)>,
    },
    /// It never reached the cluster, and will not.
    Withdrawn {
        runs: Vec<RunId>,
    },
    Observed {
        reports: Vec<RunReport>,
    },
    /// What was asked for was looked at, and told before this.
    Looked {
        replies: Replies,
    },
}
