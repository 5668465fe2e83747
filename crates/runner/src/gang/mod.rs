//! The supervisor of a run's ranks on all nodes of a job, for every kind of cluster.
//!
//! [`Gang`] decides, as a pure value: events in, orders out. [`supervise()`] carries the orders out
//! over three seams: [`Allocation`] is what the scheduler gave and can be asked, [`Outbox`] is
//! where records go, and [`Nodes`] starts and stops an attempt on the nodes. Nodes that share a
//! folder and nodes that only share a network are two implementations.

mod attempts;
mod deadline;
mod reduce;
mod supervise;
#[cfg(test)]
mod tests;

pub use attempts::{AttemptRecords, Due, Records};
pub(crate) use supervise::{Allocation, Exit, Leave, Nodes, Outbox, StopNodes, supervise};
#[cfg(test)]
pub(crate) use tests::ending_after;

use std::collections::BTreeSet;
use std::time::Duration;
use towline_core::reason::Ending;

/// How often the nodes are checked for what does not announce itself.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The rules of one run on one kind of cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) nodes: u32,
    /// How long the nodes are held after a failure, if the user asked for that.
    pub(crate) hold_on_failure: Option<Duration>,
    /// How long the nodes may take to end once they are told to.
    pub(crate) stop_timeout: Duration,
    /// The same when the scheduler ends the job, because it does not wait for us.
    pub(crate) leave_timeout: Duration,
    /// Whether the job can be put back into the queue, which gives it other nodes and all its time.
    pub(crate) can_requeue: bool,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The answer to [`Order::Decide`].
    Due(Due),
    /// The answer to [`Order::EndOpen`]: whether the attempt has ended. If not, another start of
    /// the job has the run.
    OpenEnded(bool),
    /// The answer to [`Order::Gather`]: one sentence for each node that did not come.
    Gathered { missing: Vec<String> },
    /// The answer to [`Order::Claim`]: `false` if somebody else has claimed the attempt.
    Claimed(bool),
    /// The first process of the run has started.
    Started,
    /// No process of the attempt is alive on that node.
    NodeEnded { node: u32, ending: Ending },
    /// A node has failed. Its end is reported once no process is alive there.
    NodeFailed(Ending),
    /// No rank is alive on that node, and only uploads are under way.
    OnlyUploads { node: u32 },
    /// The node does not report any more, and no process of the attempt can be alive there.
    NodeLost {
        node: u32,
        why: String,
        /// No further attempt can begin on these nodes.
        is_gone: bool,
    },
    /// Something that the run wrote has not reached its datastore.
    Uncollected(String),
    /// Another process has recorded that the attempt must end.
    StopOrdered(Ending),
    /// The user has cancelled the run.
    Cancelled,
    /// The scheduler ends this job.
    Signalled,
    /// The answer to [`Order::AskWhy`].
    EndedByScheduler(Ending),
    /// The time limit of the job is near.
    TimeIsNear,
    /// We may not run any process any more. The ending is missing if another start of the job
    /// decides it.
    CutOff(Option<Ending>),
    /// Time has passed.
    Tick,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Read the records and say what is due.
    Decide,
    /// End an attempt that an earlier start of the job has left open.
    EndOpen(u32),
    /// Wait for the nodes of the job.
    Gather,
    /// Record that this start of the job begins the attempt.
    Claim(u32),
    /// Start the attempt on all nodes.
    Begin(u32),
    /// Record that the attempt has started.
    RecordStarted(u32),
    /// End the attempt on all nodes, with its grace.
    Stop(StopNodes),
    /// The scheduler does not wait long: shorten what is under way.
    Hurry,
    /// These nodes take too long to end.
    GiveUp(Vec<u32>),
    /// End every process here at once.
    Kill,
    /// Ask the scheduler why it ends the job.
    AskWhy,
    /// Record that the nodes are held.
    Hold {
        attempt: u32,
        span: Duration,
        ending: Ending,
    },
    /// Record how the attempt ended.
    End { attempt: u32, ending: Ending },
    /// Put the job back into the queue.
    Requeue,
    /// Nothing is left to do in this start of the job.
    Exit(Leave),
}

/// The supervisor, as a value.
#[derive(Debug)]
pub(crate) struct Gang {
    rules: Rules,
    phase: Phase,
    /// The scheduler ends this job or has requeued it: no further attempt begins in it.
    is_leaving: bool,
    /// A node is gone: no further attempt begins on these nodes.
    has_lost_node: bool,
    /// The job's own time limit ended an attempt.
    is_out_of_time: bool,
    /// We may not run any process any more.
    is_cut_off: bool,
    /// The exit code of the last attempt.
    last_code: i32,
}

#[derive(Debug)]
enum Phase {
    /// An answer is awaited that says what comes next.
    Deciding,
    /// The nodes are awaited for this attempt.
    Gathering(u32),
    /// The claim of this attempt is being recorded; some nodes may be missing.
    Claiming {
        attempt: u32,
        missing: Vec<String>,
    },
    /// Processes of the attempt may be alive.
    Running(Running),
    /// The attempt has failed, and the nodes are held until then.
    Held {
        attempt: u32,
        ending: Ending,
        until: Duration,
    },
    /// The scheduler is about to end this start of the job.
    Requeued {
        until: Duration,
    },
    Over,
}

#[derive(Debug)]
struct Running {
    attempt: u32,
    /// Nodes where processes of it may be alive.
    open: BTreeSet<u32>,
    has_started: bool,
    /// Nodes where only uploads are under way.
    uploading: BTreeSet<u32>,
    /// The first cause to end it, and since when.
    stopping: Option<(Ending, Duration)>,
    uncollected: Option<String>,
}

impl Gang {
    pub(crate) const fn new(rules: Rules) -> Self {
        Self {
            rules,
            phase: Phase::Deciding,
            is_leaving: false,
            has_lost_node: false,
            is_out_of_time: false,
            is_cut_off: false,
            last_code: 1,
        }
    }

    /// Whether an attempt runs and nothing ends it yet, or its nodes are held: the time limit
    /// counts then.
    const fn counts_time(&self) -> bool {
        match &self.phase {
            Phase::Running(running) => running.stopping.is_none(),
            Phase::Held { .. } => true,
            _ => false,
        }
    }
}
