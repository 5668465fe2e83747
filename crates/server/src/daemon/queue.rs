//! The runs that have not ended, and their order.

use crate::schedule::{Holding, Waiting};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use towline_backends::local::render::{self, Need};
use towline_core::RunId;
use towline_core::change::Edit;
use towline_core::job::{RetryPolicy, Tier};
use towline_core::state::{Phase, RunState};
use towline_core::sweep::Parameters;
use towline_core::time::Moment;
use towline_engine::history::RunKey;

/// What the daemon stores of a run in memory: little, because there may be many. The rest is in its
/// plan.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) key: RunKey,
    pub(super) id: RunId,
    pub(super) submission: RunId,
    pub(super) parameters: Parameters,
    pub(super) tier: Tier,
    pub(super) need: Need,
    /// The time limit in seconds.
    pub(super) time: Option<u64>,
    pub(super) retry: Option<Box<RetryPolicy>>,
    pub(super) state: RunState,
    pub(super) started: Option<Moment>,
    /// The far cluster it is on; none if it runs on this machine.
    pub(super) far: Option<String>,
}

impl Run {
    /// Takes over what the user changed.
    pub(super) fn edit(&mut self, edit: &Edit, cpus: u32) {
        self.tier = edit.tier.unwrap_or(self.tier);
        self.time = edit.time.map_or(self.time, |time| Some(time.0));
        if let Some(shape) = &edit.shape {
            self.need = render::need(shape, cpus);
        }
    }

    /// Whether its cluster was never sent it.
    pub(super) fn is_unsent(&self) -> bool {
        self.far.is_some() && self.state.phase == Phase::Drafted
    }
}

type Place = (Reverse<Tier>, RunKey);

#[derive(Debug, Default)]
pub(super) struct Queue {
    runs: BTreeMap<RunKey, Run>,
    keys: HashMap<RunId, RunKey>,
    waiting: BTreeMap<Place, Waiting>,
    /// Runs that hold a part of the machine.
    holding: BTreeSet<RunKey>,
    /// How many runs of each submission have not ended.
    open: HashMap<RunId, usize>,
    /// The runs that begin after a run or a submission.
    dependents: HashMap<RunId, Vec<RunKey>>,
}

impl Queue {
    pub(super) fn insert(&mut self, run: Run) {
        *self.open.entry(run.submission.clone()).or_default() += 1;
        self.keys.insert(run.id.clone(), run.key);
        let key = run.key;
        for after in &run.state.after {
            self.dependents
                .entry(after.run.clone())
                .or_default()
                .push(key);
        }
        self.runs.insert(key, run);
        self.refile(key);
    }

    /// Notes that a run begins after another run or a submission.
    pub(super) fn depends(&mut self, key: RunKey, before: &RunId) {
        self.dependents.entry(before.clone()).or_default().push(key);
    }
    pub(super) fn has_dependents(&self, before: &RunId) -> bool {
        self.dependents.contains_key(before)
    }
    /// Takes out the runs that begin after a run or a submission.
    pub(super) fn dependents(&mut self, before: &RunId) -> Vec<RunKey> {
        self.dependents.remove(before).unwrap_or_default()
    }

    /// Changes the tier, the time limit or the size of a run that waits.
    pub(super) fn edit(&mut self, key: RunKey, edit: &Edit, cpus: u32) {
        let Some(run) = self.runs.get_mut(&key) else {
            return;
        };
        self.waiting.remove(&(Reverse(run.tier), key));
        run.edit(edit, cpus);
        self.refile(key);
    }

    /// Puts a run into the list that its state belongs to.
    pub(super) fn refile(&mut self, key: RunKey) {
        let Some(run) = self.runs.get(&key) else {
            return;
        };
        let place = (Reverse(run.tier), key);
        self.waiting.remove(&place);
        self.holding.remove(&key);
        if run.far.is_some() {
            return;
        }
        if run.state.runner.is_some() {
            self.holding.insert(key);
        } else if run.state.phase == Phase::Queued
            && !run.state.cancel_requested
            && !run.state.is_blocked()
        {
            let limit = run.time.map(|seconds| seconds * 1000);
            self.waiting.insert(
                place,
                Waiting {
                    key,
                    tier: run.tier,
                    need: run.need,
                    limit,
                },
            );
        }
    }

    /// Removes an ended run; `true` if it was the last of its submission.
    pub(super) fn remove(&mut self, key: RunKey) -> Option<(Run, bool)> {
        let run = self.runs.remove(&key)?;
        self.keys.remove(&run.id);
        self.waiting.remove(&(Reverse(run.tier), key));
        self.holding.remove(&key);
        let left = self.open.get_mut(&run.submission).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            self.open.remove(&run.submission);
        }
        Some((run, left == 0))
    }

    pub(super) fn get(&self, key: RunKey) -> Option<&Run> {
        self.runs.get(&key)
    }
    pub(super) fn get_mut(&mut self, key: RunKey) -> Option<&mut Run> {
        self.runs.get_mut(&key)
    }
    pub(super) fn key(&self, id: &RunId) -> Option<RunKey> {
        self.keys.get(id).copied()
    }
    pub(super) fn is_open(&self, submission: &RunId) -> bool {
        self.open.contains_key(submission)
    }
    /// The open runs of a submission, in their order.
    pub(super) fn keys_of(&self, submission: &RunId) -> Vec<RunKey> {
        if !self.is_open(submission) {
            return Vec::new();
        }
        let of = self
            .runs
            .values()
            .filter(|run| run.submission == *submission);
        of.map(|run| run.key).collect()
    }
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.values()
    }
    /// Whether a run waits to be started.
    pub(super) fn is_waiting(&self, key: RunKey) -> bool {
        let place = |run: &Run| (Reverse(run.tier), key);
        let run = self.runs.get(&key);
        run.is_some_and(|run| self.waiting.contains_key(&place(run)))
    }
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }
    pub(super) fn held_runs(&self) -> impl Iterator<Item = &Run> {
        self.holding.iter().filter_map(|key| self.runs.get(key))
    }
    pub(super) fn all(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }
    pub(super) fn holding_count(&self) -> usize {
        self.holding.len()
    }

    /// The held parts of the machine, in the scheduler's terms.
    pub(super) fn holding(&self, now: Moment, grace_millis: u64) -> Vec<Holding> {
        let now_millis = now.0.unsigned_abs();
        self.held_runs()
            .map(|run| {
                let leaving = run.state.cancel_requested || run.state.preempt_requested;
                let begun = run.started.unwrap_or(now).0.unsigned_abs();
                let limit = run
                    .time
                    .map(|seconds| (begun + seconds * 1000).max(now_millis));
                let ends_at = if leaving {
                    Some(now_millis + grace_millis)
                } else {
                    limit.map(|end| end + grace_millis)
                };
                Holding {
                    key: run.key,
                    tier: run.tier,
                    need: run.need,
                    gpus: run.state.gpus.iter().copied().collect(),
                    ends_at,
                    leaving,
                }
            })
            .collect()
    }
}
