//! A runner with its guard and its ranks, as `tow __runner` behaves: claim, ranks, end, message.

use std::collections::{BTreeSet, VecDeque};
use towline_core::RunId;
use towline_core::reason::{Cause, Ending};
use towline_wire::journal::JournalRecord;
use towline_wire::runner::Stop;

/// A message of the daemon on the runner's socket.
#[derive(Debug, Clone)]
pub(crate) enum ToRunner {
    Start {
        run: RunId,
        attempt: u32,
        gpus: Vec<u32>,
        intent_is_durable: bool,
    },
    Stop {
        run: RunId,
        attempt: u32,
        why: Stop,
    },
    Retire,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The claim is written; the ranks start next.
    Claimed,
    Running,
    Stopping(Stop),
    /// The ranks have ended; the record is written next.
    Ended(Ending),
    /// The record is on disk; the daemon is told next.
    Written(Ending),
}

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) run: RunId,
    pub(crate) attempt: u32,
    pub(crate) gpus: Vec<u32>,
    pub(crate) stage: Stage,
}

#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) name: String,
    pub(crate) is_alive: bool,
    pub(crate) has_guard: bool,
    /// The number of the daemon at the other end of its socket.
    pub(crate) control: Option<u64>,
    pub(crate) inbox: VecDeque<ToRunner>,
    pub(crate) attempt: Option<Attempt>,
    /// Attempts that were begun here. None is begun again.
    pub(crate) begun: BTreeSet<(RunId, u32)>,
    pub(crate) is_retiring: bool,
}

impl Runner {
    pub(crate) fn new(name: String, daemon: u64) -> Self {
        Self {
            name,
            is_alive: true,
            has_guard: true,
            control: Some(daemon),
            inbox: VecDeque::new(),
            attempt: None,
            begun: BTreeSet::new(),
            is_retiring: false,
        }
    }

    /// Whether its journal is locked.
    pub(crate) const fn holds_lock(&self) -> bool {
        self.is_alive || self.has_guard
    }

    pub(crate) fn carrying(&self) -> Option<(RunId, u32)> {
        let attempt = self.attempt.as_ref()?;
        Some((attempt.run.clone(), attempt.attempt))
    }
}

/// How ranks end by themselves.
pub(crate) fn own_ending(how: usize) -> Ending {
    match how % 4 {
        0 | 1 => Ending::success(),
        2 => Ending {
            exit_code: Some(1),
            ..Ending::cause(Cause::ExitCode)
        },
        _ => Ending::cause(Cause::OutOfMemory),
    }
}

/// A journal on the simulated disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    pub(crate) records: Vec<JournalRecord>,
    /// How many of them are synced.
    pub(crate) synced: usize,
    /// Removed, but a power cut may bring it back.
    pub(crate) is_removed: bool,
}

impl Journal {
    pub(crate) fn append(&mut self, record: JournalRecord, sync: bool) {
        self.records.push(record);
        if sync {
            self.synced = self.records.len();
        }
    }

    pub(crate) fn power_cut(&mut self, kept_of_eight: usize) {
        let unsynced = self.records.len() - self.synced;
        let kept = self.synced + unsynced * kept_of_eight.min(8) / 8;
        self.records.truncate(kept);
        self.synced = kept;
        self.is_removed &= kept_of_eight >= 4;
    }
}
