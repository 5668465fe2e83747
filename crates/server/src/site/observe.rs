//! Reports runs: from their records, and from one query to the scheduler for all of them. Settles
//! runs that died without an end record on the way.

mod queue;
mod settling;
mod telling;

use super::{Site, failed};
use queue::Queue;
pub(super) use queue::rows_of;
use settling::SeenFacts;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};
use towline_core::cluster::{AttemptReport, Observed, RunRef, RunReport};
use towline_core::{Error, Result, RunId};
use towline_runner::far::records::{self, Due, Records};
use towline_slurm::parse::config::Config;
use towline_slurm::parse::queue::{QueueRow, Which};
use towline_slurm::state;

/// How long a fact must stay the same before it is believed, because a scheduler that has just
/// started does not know its jobs yet.
const BELIEVED_AFTER: Duration = Duration::from_secs(12);

/// Up to this many jobs are queried by name; for more, all jobs of the user are.
const MOST_NAMES: usize = 500;

/// What one site process remembers between requests.
#[derive(Default)]
pub(super) struct Memory {
    settings: std::cell::OnceCell<Config>,
    /// Since when a run has to be settled, and on which facts.
    since: HashMap<RunId, (SeenFacts, Instant)>,
    /// Runs that were submitted once, and that neither the stage folder nor the scheduler knows.
    lost: HashSet<RunId>,
    /// When it last looked for files that nothing needs.
    pub(super) tidied: Option<Instant>,
}

/// What is left to do for a run.
enum Left {
    Nothing,
    SubmitAgain,
    /// It is settled if its facts are still the same after this time.
    SettlesAfter(Duration),
}

impl Site {
    /// Read once, because a site's settings hardly change.
    pub(super) fn settings(&self) -> Result<&Config> {
        if self.observed.settings.get().is_none() {
            let _ = self.observed.settings.set(self.slurm.config()?);
        }
        self.observed
            .settings
            .get()
            .ok_or_else(|| Error::bug("the settings are gone"))
    }

    pub(super) fn observe(&mut self, runs: &[RunRef], ask: bool) -> Result<Observed> {
        let asked = ask.then(|| self.ask_scheduler(runs)).transpose();
        let (queue, mut unasked) = match asked {
            Ok(queue) => (queue, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let mut again: BTreeMap<RunId, Vec<Option<u32>>> = BTreeMap::new();
        let mut settles_in: Option<Duration> = None;
        for (far, queue) in queue
            .iter()
            .flat_map(|queue| runs.iter().map(move |far| (far, queue)))
        {
            match self.settle_one(far, queue)? {
                Left::Nothing => {}
                Left::SubmitAgain => again
                    .entry(far.submission.clone())
                    .or_default()
                    .push(far.task),
                Left::SettlesAfter(rest) => {
                    settles_in = Some(settles_in.map_or(rest, |known| known.min(rest)));
                }
            }
        }
        for (submission, tasks) in again {
            if let Err(error) = self.carry_on(&submission, &tasks) {
                // A run that cannot go on now does not hide the reports of the others.
                unasked.get_or_insert(error.to_string());
            }
        }
        // No other process does this for runs that never started or died without an end record.
        for submission in runs
            .iter()
            .map(|far| &far.submission)
            .collect::<BTreeSet<_>>()
        {
            records::drop_secrets(&self.stage, submission);
        }
        if ask {
            self.tidy();
        }
        let reports = runs
            .iter()
            .map(|far| self.report(far, queue.as_ref()))
            .collect::<Result<_>>()?;
        let settles_in = settles_in.map(|rest| u64::try_from(rest.as_millis()).unwrap_or(u64::MAX));
        Ok(Observed {
            at: towline_host::clock::now(),
            runs: reports,
            unasked,
            settles_in,
        })
    }

    /// The controller's rows of these submissions, whatever else is in its queue.
    pub(super) fn queue_of<'r>(
        &self,
        submissions: impl IntoIterator<Item = &'r RunId>,
    ) -> Result<Vec<QueueRow>> {
        let names: BTreeSet<&str> = submissions.into_iter().map(RunId::as_str).collect();
        // A command line has a maximum length.
        let names: Vec<&str> = if names.len() > MOST_NAMES {
            Vec::new()
        } else {
            names.into_iter().collect()
        };
        self.slurm.queue(&Which {
            user: Some(&self.user),
            names: &names,
            ..Which::default()
        })
    }

    /// One query for all runs, and one to the database for jobs that the controller has forgotten
    /// or that ended without an end record, because only the database knows how.
    fn ask_scheduler(&self, runs: &[RunRef]) -> Result<Queue> {
        let rows = self.queue_of(runs.iter().map(|far| &far.submission))?;
        let mut queue = Queue {
            rows,
            accounted: Vec::new(),
        };
        let mut gone = Vec::new();
        for far in runs {
            let is_open = queue
                .row(far)
                .is_some_and(|row| !state::native(&row.state).is_ended());
            if !is_open && !self.is_over(far)? {
                gone.extend(
                    self.jobs(&far.submission)?
                        .accepted(far.task)
                        .map(|(_, job)| job.to_owned()),
                );
            }
        }
        gone.sort_unstable();
        gone.dedup();
        if !gone.is_empty() && self.settings()?.has_accounting {
            queue.accounted = self
                .slurm
                .accounting(self.settings()?.version, None, &gone, None)?;
        }
        Ok(queue)
    }

    pub(super) fn is_over(&self, far: &RunRef) -> Result<bool> {
        let folder = self.stage.run(&far.run);
        let records = Records::read(&folder).map_err(|error| failed(folder.root(), error))?;
        Ok(!records.attempts.is_empty()
            && matches!(records.due(self.policy(far).as_ref()), Due::Nothing(_)))
    }

    fn policy(&self, far: &RunRef) -> Option<towline_core::job::RetryPolicy> {
        records::order(&self.stage, &far.submission)
            .ok()
            .and_then(|order| order.plan.resolved.retry)
    }

    fn report(&self, far: &RunRef, queue: Option<&Queue>) -> Result<RunReport> {
        let folder = self.stage.run(&far.run);
        let records = Records::read(&folder).map_err(|error| failed(folder.root(), error))?;
        let jobs = self.jobs(&far.submission)?;
        let attempts = records.attempts.iter().map(|(attempt, of)| AttemptReport {
            attempt: *attempt,
            claim: of.claim.clone(),
            started: of.started.clone(),
            held: of.held.clone(),
            end: of.end.clone(),
        });
        let hosts = records
            .attempts
            .values()
            .next_back()
            .and_then(|of| of.claim.as_ref())
            .map(|claim| claim.hosts.clone())
            .unwrap_or_default();
        let mut native = queue.and_then(|queue| queue.native(far));
        if let Some(native) = native.as_mut().filter(|native| native.hosts.is_empty()) {
            native.hosts = hosts;
        }
        let attempts: Vec<AttemptReport> = attempts.collect();
        // An ended job that the scheduler remembers is not a run: its records were deleted.
        let lives = native
            .as_ref()
            .is_some_and(|native| !matches!(state::native(&native.word), state::Native::Ended(_)));
        let is_unknown = attempts.is_empty() && jobs.0.is_empty() && !lives;
        Ok(RunReport {
            run: far.run.clone(),
            is_unknown,
            is_lost: is_unknown && self.observed.lost.contains(&far.run),
            cancelled: records.cancelled,
            attempts,
            native,
            state: None,
        })
    }
}
