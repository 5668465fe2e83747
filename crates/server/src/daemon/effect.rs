//! Everything that the daemon wants done. The shell carries effects out in their order.

use super::Chosen;
use super::ledger::{Query, Write};
use super::orders::Order;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use towline_core::RunId;
use towline_core::cluster::GpuMake;
use towline_core::plan::Plan;
use towline_core::sweep::Parameters;
use towline_engine::history::RunKey;
use towline_wire::daemon::{Limits, Reply};
use towline_wire::runner::Stop;

/// One effect of [`Daemon::step`](super::Daemon::step).
///
/// Three effects are calls: `Commit`, `Read` and `StartRunner`. Their answer is the next input,
/// before any other.
#[derive(Debug)]
pub enum Effect {
    /// Sends a reply. After the last one the connection is closed.
    Reply {
        connection: u64,
        reply: Box<Reply>,
        is_last: bool,
    },
    /// Writes all or nothing. With `durable`, the answer comes after it is on disk.
    Commit {
        writes: Vec<Arc<[Write]>>,
        durable: bool,
        /// The last commit failed, so space is needed first.
        after_failure: bool,
    },
    Read(Query),
    StartRunner {
        name: String,
    },
    /// Makes the assignment, with the run's secrets, and sends it. A failure is an input.
    Assign(Box<Assign>),
    StopAttempt {
        runner: String,
        run: RunId,
        attempt: u32,
        why: Stop,
    },
    /// Tells a runner to exit when it carries nothing.
    Retire {
        runner: String,
    },
    /// Connects to a runner. Its answer is `RunnerReached` or, if it is dead, `Settled`.
    CallRunner {
        name: String,
    },
    ReadJournal {
        name: String,
        carrying: Option<(RunId, u32)>,
        /// How long to wait first.
        after: Duration,
    },
    /// Removes the cgroup of a dead runner if it is empty.
    RemoveGroup {
        runner: String,
    },
    /// Removes the journals and sockets of dead runners.
    RemoveJournals {
        runners: Vec<String>,
    },
    EndOrphans(Box<Orphans>),
    /// Unmounts the data of a run whose processes were killed.
    ReleaseMounts {
        run: RunId,
    },
    /// Resumes those of these runners that are stopped (SIGSTOP).
    ContinueStopped {
        runners: BTreeSet<String>,
    },
    DropSecrets {
        submission: RunId,
    },
    /// Stores the machine's limits for the next daemon.
    KeepLimits(Limits),
    LookAtGpus(Limits),
    KeepReserve,
    ReleaseReserve,
    Order {
        cluster: String,
        order: Order,
    },
    /// A client asks for a tunnel.
    Tunnel {
        connection: u64,
        name: String,
    },
    /// The set of automatic backups has changed.
    Workspaces {
        connection: u64,
    },
    Log(String),
    /// A named place where a test kills the program.
    Pass(&'static str),
    /// Exits once the replies are sent.
    Leave,
}

/// The start of one attempt.
#[derive(Debug)]
pub struct Assign {
    pub chosen: Chosen,
    pub run: RunId,
    pub submission: RunId,
    pub parameters: Parameters,
    pub plan: Arc<Plan>,
    /// By node.
    pub gpus: Vec<Vec<u32>>,
    pub gpu_make: GpuMake,
    /// The intent is on disk, so the claim need not be.
    pub intent_is_durable: bool,
}

/// The processes that a dead runner may have left. All of them are killed; then comes
/// `OrphansEnded`.
#[derive(Debug)]
pub struct Orphans {
    pub key: RunKey,
    pub attempt: u32,
    pub run: RunId,
    pub runner: Option<String>,
    /// By pid and start time.
    pub processes: Vec<(i32, u64)>,
    /// The machine has not been booted since, so the pids are still theirs.
    pub is_of_this_boot: bool,
}
