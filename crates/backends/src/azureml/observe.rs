//! Observes many runs at once: one listing of status documents, and one API call per page of 50
//! jobs, or per run if there are at most 20.

mod asking;

use super::client::url;
use super::cluster::AzureCluster;
use super::memory::{LOST_AFTER, ObjectPlace, SETTLE_TIME};
use super::report::{JobView, Signs, report};
use super::site::AzureSite;
use super::state::NativeState;
use asking::job_in;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use towline_core::cloud::Call;
use towline_core::cluster::{AttemptReport, Observed, RunRef, RunReport};
use towline_core::reason::Cause;
use towline_core::{Result, RunId};
use towline_wire::crew::StatusDocument;

/// Up to this many jobs are queried one by one; for more, lists are read.
const SINGLE_QUERY_JOBS: usize = 20;
/// The shortest pause before the service is asked again about an end.
const SERVICE_CHECK_INTERVAL: Duration = Duration::from_millis(300);
/// The pause between two looks at a job that is being ended.
const ENDING_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause between two looks.
const SLOW_CHECK_INTERVAL: Duration = Duration::from_secs(20);

/// The service's answers about jobs.
struct Jobs {
    known: HashMap<String, JobView>,
    /// Jobs without an answer; `failed` holds the first error.
    silent: HashSet<String>,
    failed: std::result::Result<(), String>,
}

impl AzureCluster {
    /// The job of a run, if there is one.
    pub(super) fn job(&self, far: &RunRef) -> Result<Option<JobView>> {
        let site = self.site()?;
        let job = job_in(
            &self
                .cloud
                .call(&Call::get(self.job_url(&site, job_name(far))))?,
        )?;
        if let Some(job) = &job {
            self.learn(far, job);
        }
        Ok(job)
    }

    fn job_url(&self, site: &AzureSite, name: &str) -> String {
        url(self.cloud(), &format!("{}/jobs/{name}", site.scope.id()))
    }

    /// Notes the place of the run's objects.
    fn learn(&self, far: &RunRef, job: &JobView) {
        let object_place = match (&job.run, &job.stage) {
            (Some(_), Some(stage)) => ObjectPlace::Stage(stage.clone()),
            (Some(_), None) => ObjectPlace::Stage(self.own_stage()),
            (None, _) => ObjectPlace::Foreign,
        };
        self.memory()
            .object_place
            .insert(far.run.clone(), object_place);
    }

    pub(super) fn object_place(&self, far: &RunRef) -> Result<ObjectPlace> {
        if let Some(known) = self.memory().object_place.get(&far.run) {
            return Ok(known.clone());
        }
        // A colleague's run has a name like ours, so only its job shows whose it is.
        self.job(far)?;
        Ok(self.likely(far))
    }

    /// The place of the run's objects, as far as it is known without a call.
    fn likely(&self, far: &RunRef) -> ObjectPlace {
        let is_named_so = far
            .native
            .as_deref()
            .is_none_or(|native| native == far.run.as_str());
        let usual = || {
            if is_named_so {
                ObjectPlace::Stage(self.own_stage())
            } else {
                ObjectPlace::Foreign
            }
        };
        self.memory()
            .object_place
            .get(&far.run)
            .cloned()
            .unwrap_or_else(usual)
    }

    pub(super) fn look_at(&self, runs: &[RunRef], ask: bool) -> Result<Observed> {
        let at = towline_host::clock::now();
        let jobs = if ask { Some(self.jobs(runs)?) } else { None };
        for far in runs {
            if let Some(job) = jobs.as_ref().and_then(|jobs| jobs.known.get(job_name(far))) {
                self.learn(far, job);
            }
        }
        let status_document = self.status_document(runs)?;
        let mut observed = Observed {
            at,
            runs: Vec::new(),
            unasked: None,
            settles_in: None,
        };
        let site = self.site()?;
        if let Some(jobs) = &jobs {
            self.learn_errors(runs, &jobs.known, &site);
        }
        // A failure about one run does not hide the reports of the others.
        let mut failed = jobs.as_ref().map_or(Ok(()), |jobs| jobs.failed.clone());
        for far in runs {
            let status_document = status_document.get(&far.run);
            let report = match &jobs {
                Some(jobs) if jobs.silent.contains(job_name(far)) => continue,
                Some(jobs) => self.report_of(
                    far,
                    jobs.known.get(job_name(far)),
                    status_document,
                    &site,
                    &mut observed.settles_in,
                ),
                None => self.quick(far, status_document, &mut observed.settles_in),
            };
            match report {
                Ok(report) => observed.runs.push(report),
                Err(error) => failed = failed.and(Err(error.to_string())),
            }
        }
        if let Some(jobs) = &jobs {
            let cancelled = self.cancel_unacknowledged(runs, &jobs.known, &mut observed.settles_in);
            failed = failed.and(cancelled.map_err(|error| error.to_string()));
            for (submission, error) in self.clear_secrets(runs) {
                // An end is not reported while its secrets are in the vault, because an ended run
                // is not looked at again.
                observed.runs.retain(|report| {
                    RunRef::of(&report.run).submission != submission
                        || report.attempts.iter().all(|of| of.end.is_none())
                });
                failed = failed.and(Err(error.to_string()));
            }
            self.clear_status_documents(&observed.runs);
        }
        observed.unasked = failed.err();
        Ok(observed)
    }

    /// A report without asking the service, from the status document. An end that must wait for the
    /// service is left out.
    fn quick(
        &self,
        far: &RunRef,
        status_document: Option<&StatusDocument>,
        settles_in: &mut Option<u64>,
    ) -> Result<RunReport> {
        let mut attempts: Vec<AttemptReport> = status_document
            .map(|status_document| status_document.attempts.clone())
            .unwrap_or_default();
        if self.waits_for_service(far, status_document)? {
            later(
                Some(self.slow_since(&far.run)),
                SERVICE_CHECK_INTERVAL,
                settles_in,
            );
            if let Some(last) = attempts.last_mut() {
                last.end = None;
            }
        }
        Ok(RunReport {
            run: far.run.clone(),
            is_unknown: false,
            is_lost: false,
            cancelled: false,
            attempts,
            native: None,
            state: None,
        })
    }

    fn slow_since(&self, run: &RunId) -> Instant {
        *self
            .memory()
            .slow
            .entry(run.clone())
            .or_insert_with(Instant::now)
    }

    fn report_of(
        &self,
        far: &RunRef,
        job: Option<&JobView>,
        status_document: Option<&StatusDocument>,
        site: &AzureSite,
        settles_in: &mut Option<u64>,
    ) -> Result<RunReport> {
        let Some(job) = job else {
            return Ok(self.not_found(far, status_document, settles_in));
        };
        if job.state == NativeState::Cancelling {
            // The user who cancelled waits for it.
            later(
                Some(self.slow_since(&far.run)),
                ENDING_CHECK_INTERVAL,
                settles_in,
            );
        }
        let is_settled = self.is_settled(far, job, status_document, settles_in);
        let error = self.memory().errors.get(&far.run).cloned().flatten();
        let waits_for_service =
            !job.state.is_final() && self.waits_for_service(far, status_document)?;
        let uploads = job.state == NativeState::Failed && self.remains(far)?.uploads;
        let told = self.memory().told.contains_key(&far.run);
        Ok(report(
            far,
            job,
            site,
            Signs {
                status_document,
                error: error.as_ref(),
                is_settled,
                uploads,
                told,
                waits_for_service,
            },
        ))
    }

    /// Whether the run has recorded its end, but the service still has work to do for it.
    fn waits_for_service(
        &self,
        far: &RunRef,
        status_document: Option<&StatusDocument>,
    ) -> Result<bool> {
        let Some(end) = status_document
            .and_then(|status_document| status_document.attempts.last())
            .and_then(|of| of.end.as_ref())
        else {
            return Ok(false);
        };
        // The service may replace the lost nodes and start the job again.
        if end.ending.cause == Some(Cause::NodeFailed) {
            return Ok(true);
        }
        let remains = self.remains(far)?;
        Ok(remains.secrets || remains.uploads && end.ending.cause.is_none())
    }

    /// Whether the final state can be reported. It can at once if the status document says how the
    /// run ended. If not, a status document may still be on its way.
    fn is_settled(
        &self,
        far: &RunRef,
        job: &JobView,
        status_document: Option<&StatusDocument>,
        settles_in: &mut Option<u64>,
    ) -> bool {
        let mut memory = self.memory();
        memory.seen.insert(far.run.clone());
        memory.missing.remove(&far.run);
        if !job.state.is_final() {
            memory.finals.remove(&far.run);
            return false;
        }
        let since = *memory
            .finals
            .entry(far.run.clone())
            .or_insert_with(Instant::now);
        // A job that was cancelled before it began never writes a status document.
        let is_mute = status_document.is_none()
            && job.started.is_none()
            && job.state == NativeState::Canceled;
        let is_told = is_mute
            || status_document
                .and_then(|status_document| status_document.attempts.last())
                .is_some_and(|of| of.end.is_some());
        due(
            since,
            if is_told || !job.is_ours() {
                Duration::ZERO
            } else {
                SETTLE_TIME
            },
            settles_in,
        )
    }

    /// The report if the service has no such job: it was never created, is not listed yet, or was
    /// deleted.
    fn not_found(
        &self,
        far: &RunRef,
        status_document: Option<&StatusDocument>,
        settles_in: &mut Option<u64>,
    ) -> RunReport {
        let mut memory = self.memory();
        let since = *memory
            .missing
            .entry(far.run.clone())
            .or_insert_with(Instant::now);
        let was_there = memory.seen.contains(&far.run) || far.native.is_some();
        let is_lost = was_there && due(since, LOST_AFTER, settles_in);
        if is_lost {
            memory.finals.insert(far.run.clone(), since);
            memory.unacknowledged.remove(&far.run);
        }
        let attempts = status_document
            .map(|status_document| status_document.attempts.clone())
            .unwrap_or_default();
        RunReport {
            run: far.run.clone(),
            is_unknown: attempts.is_empty(),
            is_lost,
            cancelled: false,
            attempts,
            native: None,
            state: None,
        }
    }
}

/// The name of a run's job in the service.
pub(super) fn job_name(far: &RunRef) -> &str {
    far.native.as_deref().unwrap_or_else(|| far.run.as_str())
}

/// Whether `wait` has passed; if not, lowers `settles_in` to the remaining time.
fn due(since: Instant, wait: Duration, settles_in: &mut Option<u64>) -> bool {
    let left = wait.saturating_sub(since.elapsed());
    if left.is_zero() {
        return true;
    }
    let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX) + 50;
    *settles_in = Some(settles_in.map_or(left, |known: u64| known.min(left)));
    false
}

/// Asks for another look after a pause, which grows with the time already waited.
pub(super) fn later(since: Option<Instant>, least: Duration, settles_in: &mut Option<u64>) {
    let wait = since.map_or(least, |since| {
        (since.elapsed() / 4).clamp(least, SLOW_CHECK_INTERVAL)
    });
    due(Instant::now(), wait, settles_in);
}
