//! Everything that the daemon reacts to.

use super::Chosen;
use super::ledger::{Answer, Written};
use super::orders::Report;
use std::sync::Arc;
use std::time::Duration;
use towline_core::cluster::GpuFacts;
use towline_core::resolve::Resolved;
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{ActiveRun, RunKey};
use towline_wire::daemon::Hello;
use towline_wire::journal::JournalRecord;
use towline_wire::runner::FromRunner;

/// The time of an input, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The system's clock. It may jump.
    pub wall: Moment,
    /// The time since the daemon began. It never goes back.
    pub steady: Duration,
}

/// One input of [`Daemon::step`](super::Daemon::step).
#[derive(Debug)]
pub enum Input {
    /// The first input: what an earlier daemon left.
    Begin(Box<Found>),
    /// The second input: clients can connect now.
    Ready,
    Asked {
        connection: u64,
        hello: Box<Hello>,
        /// Whether runs can have the priority and limits that the submission asks for.
        limits_are_possible: bool,
    },
    HungUp {
        connection: u64,
    },
    /// The answer to the last [`Effect::Commit`](super::Effect::Commit): all of its writes are in
    /// the history, or none.
    Committed(Result<Vec<Written>>),
    /// The answer to the last [`Effect::Read`](super::Effect::Read).
    Answered(Answer),
    RunnerStarted {
        name: String,
    },
    RunnerNotStarted {
        name: String,
        why: String,
    },
    /// There is a connection to a runner that this daemon did not start, or had lost.
    RunnerReached {
        name: String,
    },
    Runner {
        name: String,
        message: FromRunner,
    },
    /// The connection to a runner has ended.
    RunnerGone {
        name: String,
    },
    JournalRead {
        name: String,
        carrying: Option<(RunId, u32)>,
        records: Result<Vec<JournalRecord>, String>,
    },
    /// The runner's journal is unlocked: what it says is final.
    Settled {
        name: String,
        records: Vec<JournalRecord>,
    },
    /// The processes that a dead runner left are dead too.
    OrphansEnded {
        key: RunKey,
        attempt: u32,
    },
    /// The runner was sent nothing, because the assignment could not be made.
    NotAssigned {
        chosen: Chosen,
        error: Error,
    },
    GpusSeen(Vec<GpuFacts>),
    /// Whether disk space is held in reserve.
    ReserveKept(bool),
    Far {
        cluster: String,
        report: Report,
    },
    /// The cluster has a new thread, which knows none of its runs.
    ClusterRestarted {
        cluster: String,
    },
    /// A second has passed.
    Tick {
        /// Tunnels or automatic backups need the daemon.
        is_needed: bool,
    },
    /// No other input waits: now the daemon writes what it has decided.
    Flush,
}

/// What an earlier daemon left on disk.
#[derive(Debug, Default)]
pub struct Found {
    /// The runs that have not ended.
    pub runs: Vec<FoundRun>,
    /// The runners that have a journal.
    pub runners: Vec<FoundRunner>,
    /// The submissions whose secrets are stored.
    pub secrets: Vec<RunId>,
    /// Disk space is held in reserve.
    pub reserve: bool,
}

#[derive(Debug, Clone)]
pub struct FoundRun {
    pub run: ActiveRun,
    pub resolved: Arc<Resolved>,
    /// The far cluster it is on; none if it runs on this machine.
    pub far: Option<String>,
}

#[derive(Debug, Clone)]
pub struct FoundRunner {
    pub name: String,
    /// Its journal is locked, so it may be alive. Found before the records were read.
    pub is_alive: bool,
    pub records: Vec<JournalRecord>,
}
