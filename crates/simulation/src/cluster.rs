//! A far cluster: what its scheduler and its records hold, and how it answers.

use crate::runner::own_ending;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use towline_core::change::Change;
use towline_core::cluster::{
    AttemptReport, Claim, Depth, End, JobStart, Observed, RunRef, RunReport, Started,
};
use towline_core::job::RetryPolicy;
use towline_core::plan::Plan;
use towline_core::reason::{Cause, Ending};
use towline_core::retry::{Next, after};
use towline_core::state::Native;
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};

#[derive(Debug)]
pub(crate) struct Job {
    native: String,
    created: Duration,
    /// It shows in the scheduler's lists, at the latest after the delay that the cluster states.
    is_listed: bool,
    attempts: Vec<AttemptReport>,
    pub(crate) is_running: bool,
    pub(crate) is_over: bool,
    pub(crate) is_on_hold: bool,
    counted: u32,
    policy: Option<RetryPolicy>,
    /// The bytes that its ranks have printed.
    pub(crate) printed: u64,
}

/// How long after its submission a job may be missing from lists.
pub(crate) const LISTING_DELAY: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// The time of the present call.
    pub(crate) now: Duration,
    pub(crate) is_down: bool,
    pub(crate) loses_answer: bool,
    pub(crate) refuses: bool,
    pub(crate) jobs: BTreeMap<RunId, Job>,
    /// Cancels are noted in the run's folder, even if there is no job yet.
    cancelled: BTreeSet<RunId>,
    last_native: u32,
}

fn unreachable<T>(what: &str) -> Result<T> {
    Err(Error::unreachable(what))
}

impl Cluster {
    /// Whether a call reaches the cluster, and whether its answer comes back.
    pub(crate) fn reach<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.is_down {
            return unreachable("no network");
        }
        let answer = call(self);
        if std::mem::take(&mut self.loses_answer) {
            return unreachable("the answer is lost");
        }
        answer
    }

    /// Takes a submission. The same one twice makes one job. It may be refused although an earlier
    /// try was taken.
    pub(crate) fn submit(&mut self, plan: &Plan, now: Moment) -> Result<Vec<String>> {
        if self.refuses {
            return Err(Error::config("the partition is unknown"));
        }
        let mut natives = Vec::new();
        for run in &plan.runs {
            if !self.jobs.contains_key(&run.id) {
                self.last_native += 1;
                let job = Job {
                    native: self.last_native.to_string(),
                    created: self.now,
                    is_listed: false,
                    attempts: Vec::new(),
                    is_running: false,
                    is_over: false,
                    is_on_hold: false,
                    counted: 0,
                    policy: plan.resolved.retry.clone(),
                    printed: 0,
                };
                self.jobs.insert(run.id.clone(), job);
                self.end_if_cancelled(&run.id, now);
            }
            natives.extend(self.jobs.get(&run.id).map(|job| job.native.clone()));
        }
        Ok(natives)
    }

    pub(crate) fn cancel(&mut self, runs: &[RunRef], now: Moment) {
        for run in runs {
            self.cancelled.insert(run.run.clone());
            self.end_if_cancelled(&run.run, now);
        }
    }

    fn end_if_cancelled(&mut self, run: &RunId, now: Moment) {
        if !self.cancelled.contains(run) {
            return;
        }
        if let Some(job) = self.jobs.get_mut(run).filter(|job| !job.is_over) {
            job.end(&Ending::cause(Cause::ByUser), now, true);
        }
    }

    pub(crate) fn observe(&self, runs: &[RunRef], depth: Depth, now: Moment) -> Observed {
        let report = |of: &RunRef| self.report(&of.run, depth);
        Observed {
            at: now,
            runs: runs.iter().map(report).collect(),
            unasked: None,
            settles_in: None,
        }
    }

    fn report(&self, run: &RunId, depth: Depth) -> RunReport {
        let seen = |job: &&Job| {
            let is_old = self.now.saturating_sub(job.created) >= LISTING_DELAY;
            is_old || job.is_listed || !job.attempts.is_empty()
        };
        let job = self.jobs.get(run).filter(seen);
        RunReport {
            run: run.clone(),
            is_unknown: job.is_none(),
            is_lost: false,
            cancelled: self.cancelled.contains(run),
            attempts: job.map(|job| job.attempts.clone()).unwrap_or_default(),
            native: job.filter(|_| depth == Depth::Scheduler).map(|job| Native {
                id: job.native.clone(),
                word: if job.is_running { "RUNNING" } else { "PENDING" }.to_owned(),
                ..Native::default()
            }),
            state: None,
        }
    }

    /// The scheduler starts a job that waits.
    pub(crate) fn start(&mut self, which: usize, now: Moment) -> Option<(RunId, u32)> {
        let waits =
            |(_, job): &(&RunId, &mut Job)| !job.is_running && !job.is_over && !job.is_on_hold;
        let mut waiting: Vec<(&RunId, &mut Job)> = self.jobs.iter_mut().filter(waits).collect();
        let count = waiting.len().max(1);
        let (run, job) = waiting.get_mut(which % count)?;
        let attempt = u32::try_from(job.attempts.len()).unwrap_or(0) + 1;
        job.is_running = true;
        job.is_listed = true;
        job.counted += 1;
        job.attempts.push(AttemptReport {
            attempt,
            claim: Some(Claim {
                by: JobStart {
                    job: job.native.clone(),
                    restarts: attempt - 1,
                },
                at: now,
                hosts: vec!["node".to_owned()],
                port: 1,
            }),
            started: Some(Started { at: now }),
            held: None,
            end: None,
        });
        Some(((*run).clone(), attempt))
    }

    /// Changes jobs that wait. Returns those that it refuses to change.
    pub(crate) fn change(&mut self, runs: &[RunRef], change: &Change) -> Vec<(RunId, Error)> {
        let mut refused = Vec::new();
        for run in runs {
            let waits = |job: &&mut Job| !job.is_running && !job.is_over;
            match (self.jobs.get_mut(&run.run).filter(waits), change) {
                (Some(job), Change::Hold) => job.is_on_hold = true,
                (Some(job), Change::Resume) => job.is_on_hold = false,
                (Some(_), Change::Edit(_)) => {}
                (None, _) => refused.push((run.run.clone(), Error::refused("it does not wait"))),
            }
        }
        refused
    }

    fn running(&mut self, which: usize) -> Option<&mut Job> {
        let mut running: Vec<&mut Job> = self
            .jobs
            .values_mut()
            .filter(|job| job.is_running)
            .collect();
        let count = running.len().max(1);
        (which % count < running.len()).then(|| running.swap_remove(which % count))
    }

    pub(crate) fn print(&mut self, which: usize, bytes: u64) {
        if let Some(job) = self.running(which) {
            job.printed += bytes;
        }
    }

    pub(crate) fn end(&mut self, which: usize, how: usize, now: Moment) {
        if let Some(job) = self.running(which) {
            let ending = match how % 6 {
                4 => Ending::cause(Cause::Preempted),
                5 => Ending::cause(Cause::NodeFailed),
                how => own_ending(how),
            };
            job.end(&ending, now, false);
        }
    }

    /// Ends a job by itself, unless its run was cancelled: then it has to be stopped.
    pub(crate) fn end_one_of(
        &mut self,
        which: usize,
        cancelled: &BTreeMap<RunId, u32>,
        now: Moment,
    ) {
        let jobs = self.jobs.iter_mut();
        let mut running: Vec<&mut Job> = jobs
            .filter(|(run, job)| job.is_running && !cancelled.contains_key(*run))
            .map(|(_, job)| job)
            .collect();
        let count = running.len().max(1);
        if let Some(job) = running.get_mut(which % count) {
            job.end(&own_ending(0), now, false);
        }
    }

    pub(crate) fn list(&mut self) {
        for job in self.jobs.values_mut() {
            job.is_listed = true;
        }
    }
}

impl Job {
    /// Ends the attempt that runs, or the job before its first, and decides what follows as its
    /// runner would.
    fn end(&mut self, ending: &Ending, now: Moment, is_cancelled: bool) {
        let end = End {
            at: now,
            ending: ending.clone(),
        };
        match self.attempts.last_mut().filter(|of| of.end.is_none()) {
            Some(open) => open.end = Some(end),
            None => self.attempts.push(AttemptReport {
                attempt: 0,
                claim: None,
                started: None,
                held: None,
                end: Some(end),
            }),
        }
        self.is_running = false;
        match after(self.policy.as_ref(), ending, self.counted, is_cancelled) {
            Next::End => self.is_over = true,
            Next::Requeue { counted } => self.counted -= u32::from(!counted),
        }
    }
}
