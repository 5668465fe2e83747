//! The truth about the world, seen from outside, and what must hold of it.

use crate::history::History;
use std::collections::{BTreeMap, BTreeSet};
use towline_core::RunId;
use towline_core::after::{After, Verdict};
use towline_core::reason::Ending;

/// Ranks that are alive on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alive {
    pub(crate) run: RunId,
    pub(crate) attempt: u32,
    pub(crate) runner: String,
    pub(crate) gpus: Vec<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Runs whose submission was answered: they must happen.
    pub(crate) acknowledged: BTreeSet<RunId>,
    /// Submissions that were refused and asked for only once: they must not happen.
    pub(crate) refused: BTreeSet<RunId>,
    /// Runs whose cancel was answered, with the attempt that they had then.
    pub(crate) cancelled: BTreeMap<RunId, u32>,
    /// Runs that a user wanted removed from the history.
    pub(crate) forgotten: BTreeSet<RunId>,
    /// The run that must end before a run begins.
    pub(crate) after: BTreeMap<RunId, After>,
    /// Runs of which a client was told that they are on hold, and that nobody wanted to resume.
    pub(crate) on_hold: BTreeSet<RunId>,
    /// All faults are over, and somebody resumes every run at any moment.
    pub(crate) all_are_resumed: bool,
    pub(crate) alive: Vec<Alive>,
    /// Attempts that have begun, here or on a cluster.
    begun: BTreeSet<(RunId, u32)>,
    /// How attempts on this machine ended, by their synced records.
    pub(crate) endings: BTreeMap<(RunId, u32), Ending>,
    /// The first promise that was broken.
    pub(crate) broken: Option<String>,
}

impl Facts {
    pub(crate) fn break_promise(&mut self, what: impl Into<String>) {
        if self.broken.is_none() {
            self.broken = Some(what.into());
        }
    }

    /// An attempt begins: no other may be alive, it has not begun before, its GPUs are free, and its
    /// run was not cancelled before it.
    pub(crate) fn begin(&mut self, new: Alive) {
        let name = format!("attempt {} of {}", new.attempt, new.run);
        if !self.begun.insert((new.run.clone(), new.attempt)) {
            self.break_promise(format!("{name} began twice"));
        }
        let last = self.cancelled.get(&new.run);
        if last.is_some_and(|last| *last < new.attempt) {
            self.break_promise(format!("{name} began after the cancel"));
        }
        let other = self.alive.iter().find(|alive| alive.run == new.run);
        if let Some(other) = other {
            let what = format!("{name} began while attempt {} is alive", other.attempt);
            self.break_promise(what);
        }
        let shared = self
            .alive
            .iter()
            .find(|alive| alive.gpus.iter().any(|gpu| new.gpus.contains(gpu)));
        if let Some(other) = shared {
            let what = format!("{name} has a GPU that {} has", other.run);
            self.break_promise(what);
        }
        self.alive.push(new);
    }

    /// An attempt begins on a far cluster.
    pub(crate) fn begin_far(&mut self, run: &RunId, attempt: u32) {
        if !self.begun.insert((run.clone(), attempt)) {
            self.break_promise(format!(
                "attempt {attempt} of {run} began twice on its cluster"
            ));
        }
    }

    /// A run begins: it is not on hold, and the run before it has ended as it had to.
    pub(crate) fn check_begin(&mut self, run: &RunId, history: &History) {
        if self.on_hold.contains(run) {
            self.break_promise(format!("{run} began while it is on hold"));
        }
        let Some(after) = self.after.get(run) else {
            return;
        };
        let counts = history.phases_of(&after.run);
        if after.when.judge(&counts) != Verdict::Holds && !self.forgotten.contains(&after.run) {
            let what = format!("{run} began, and {after} does not hold: {counts}");
            self.break_promise(what);
        }
    }

    pub(crate) fn end_ranks(&mut self, run: &RunId) {
        self.alive.retain(|alive| alive.run != *run);
    }

    pub(crate) fn has_begun(&self, run: &RunId) -> bool {
        let first = (run.clone(), 0);
        let mut later = self.begun.range(first..);
        later.next().is_some_and(|(begun, _)| begun == run)
    }
}
