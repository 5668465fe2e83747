//! Makes the report of a run from the service's state of its job and from the run's status
//! document. Pure.

use super::site::AzureSite;
use super::state::{self, NativeState, RunError, moment};
use serde_json::Value;
use towline_core::cluster::{AttemptReport, RunRef, RunReport};
use towline_core::cluster::{Claim, End, JobStart, Started};
use towline_core::reason::{Cause, Ending};
use towline_core::state::Native;
use towline_core::time::Moment;
use towline_wire::crew::StatusDocument;

/// The service's description of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JobView {
    pub name: String,
    pub word: String,
    pub state: NativeState,
    /// Its run, if `tow` submitted it.
    pub run: Option<String>,
    /// The job only holds nodes. A virtual cluster starts no command in such a job, so there is no
    /// status document.
    pub is_interactive: bool,
    pub stage: Option<String>,
    pub display_name: String,
    pub user: String,
    pub nodes: u32,
    /// The id of its compute or virtual cluster.
    pub compute: String,
    pub created: Option<Moment>,
    pub started: Option<Moment>,
    pub ended: Option<Moment>,
    pub url: Option<String>,
    /// `ssh://user@host:port`, as Kubernetes gives it.
    pub ssh: Option<String>,
}

impl JobView {
    pub(super) fn read(job: &Value) -> Option<Self> {
        let properties = &job["properties"];
        let own = &properties["properties"];
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let time = |value: &Value| value.as_str().and_then(moment);
        let word = text(&properties["status"]).unwrap_or_else(|| "NotStarted".to_owned());
        let name = text(&job["name"])?;
        Some(Self {
            state: state::native(&word, &properties["tags"]),
            word,
            run: text(&own["tow.run"]),
            is_interactive: properties["resources"]["properties"]["AISuperComputer"]["interactive"]
                == true,
            stage: text(&own["tow.stage"]),
            display_name: text(&properties["displayName"]).unwrap_or_else(|| name.clone()),
            user: text(&job["systemData"]["createdBy"]).unwrap_or_default(),
            nodes: properties["resources"]["instanceCount"]
                .as_u64()
                .and_then(|nodes| u32::try_from(nodes).ok())
                .unwrap_or(1),
            compute: text(&properties["computeId"]).unwrap_or_default(),
            created: time(&job["systemData"]["createdAt"]),
            started: time(&own["StartTimeUtc"]),
            ended: time(&own["EndTimeUtc"]),
            url: text(&properties["services"]["Studio"]["endpoint"]),
            ssh: text(&properties["tags"]["ssh"]),
            name,
        })
    }

    /// Whether our program runs in the job and writes a status document.
    pub(super) const fn is_ours(&self) -> bool {
        self.run.is_some() && !self.is_interactive
    }
}

/// Further facts for a report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs<'a> {
    pub status_document: Option<&'a StatusDocument>,
    pub error: Option<&'a RunError>,
    /// The job has been in its final state for long enough: no more status documents will come.
    pub is_settled: bool,
    /// The service uploads its results after the end.
    pub uploads: bool,
    /// We cancelled it.
    pub told: bool,
    /// The run has recorded its end, but it is over only when the service has ended the job.
    pub waits_for_service: bool,
}

pub(super) fn report(far: &RunRef, job: &JobView, site: &AzureSite, signs: Signs<'_>) -> RunReport {
    let mut attempts = if job.is_ours() {
        signs
            .status_document
            .map(|status_document| status_document.attempts.clone())
            .unwrap_or_default()
    } else {
        foreign(job, signs.error)
    };
    if job.is_ours() {
        complete(&mut attempts, job, signs);
    }
    let hosts = attempts
        .last()
        .and_then(|of| of.claim.as_ref())
        .map(|claim| claim.hosts.clone())
        .unwrap_or_default();
    let native = Native {
        id: job.name.clone(),
        word: job.word.clone(),
        reason: signs
            .error
            .map(|error| error.code.clone())
            .unwrap_or_default(),
        hosts,
        start: None,
        url: Some(job.url.clone().unwrap_or_else(|| site.portal(&job.name))),
    };
    let is_ended_by_us = signs.told && job.word == "Canceled";
    let cancelled = job.state == NativeState::Cancelling
        || ((job.state == NativeState::Canceled || is_ended_by_us)
            && !is_timed_out(&attempts, job, signs));
    RunReport {
        run: far.run.clone(),
        is_unknown: false,
        is_lost: false,
        cancelled,
        attempts,
        native: Some(native),
        state: None,
    }
}

/// Whether a time limit ended it, according to our program or to the service.
fn is_timed_out(attempts: &[AttemptReport], job: &JobView, signs: Signs<'_>) -> bool {
    attempts.iter().any(|of| {
        of.end
            .as_ref()
            .is_some_and(|end| end.ending.cause == Some(Cause::TimeLimit))
    }) || state::ending(job.state, signs.error, true).cause == Some(Cause::TimeLimit)
}

/// The one attempt of a job without a status document, from the service's description.
fn foreign(job: &JobView, error: Option<&RunError>) -> Vec<AttemptReport> {
    let created = job.created.unwrap_or_default();
    let began = job.started.unwrap_or(created);
    let is_final = job.state.is_final();
    let has_begun = is_final && job.started.is_some()
        || matches!(job.state, NativeState::Running | NativeState::Finalizing);
    let end = is_final.then(|| End {
        at: job.ended.unwrap_or(began),
        ending: state::ending(job.state, error, false),
    });
    if !has_begun {
        return end.map(end_of_all).into_iter().collect();
    }
    let claim = Claim {
        by: JobStart {
            job: job.name.clone(),
            restarts: 0,
        },
        at: began,
        hosts: Vec::new(),
        port: 0,
    };
    vec![AttemptReport {
        attempt: 1,
        claim: Some(claim),
        started: Some(Started { at: began }),
        held: None,
        end,
    }]
}

/// Adds what only the service knows: an end that the runner could not record, or that no further
/// attempt follows.
fn complete(attempts: &mut Vec<AttemptReport>, job: &JobView, signs: Signs<'_>) {
    if !job.state.is_final() {
        if signs.waits_for_service
            && let Some(last) = attempts.last_mut()
        {
            last.end = None;
        }
        return;
    }
    if !signs.is_settled {
        return;
    }
    let at = job.ended.unwrap_or_else(|| {
        signs
            .status_document
            .map_or_else(Moment::default, |status_document| status_document.written)
    });
    // Kubernetes reports a job as killed even if we cancelled it.
    let state = if signs.told && job.word == "Canceled" {
        NativeState::Canceled
    } else {
        job.state
    };
    let told = state::ending(state, signs.error, true);
    end_last_attempt(attempts, job, signs, at, &told);
    end_after_attempts(attempts, job, at, told);
}

/// Gives the last attempt the end that the service reports. If there was no attempt, the job gets
/// it.
fn end_last_attempt(
    attempts: &mut Vec<AttemptReport>,
    job: &JobView,
    signs: Signs<'_>,
    at: Moment,
    told: &Ending,
) {
    match attempts.last_mut() {
        Some(last) if last.end.is_none() => {
            let ending = match (&last.held, told.cause) {
                (Some(held), _) => held.ending.clone(),
                // The program ran and is gone, which says more than the service's general message.
                (None, Some(Cause::NotStarted)) => Ending {
                    cause: Some(Cause::NodeFailed),
                    ..told.clone()
                },
                _ => told.clone(),
            };
            last.end = Some(End { at, ending });
        }
        Some(last) => {
            // The program succeeded, but the service failed to upload its results.
            if let Some(end) = last.end.as_mut().filter(|end| {
                end.ending.cause.is_none() && signs.uploads && job.state == NativeState::Failed
            }) {
                let said = signs
                    .error
                    .map_or("the service calls the job failed", |error| {
                        error.message.as_str()
                    });
                end.ending = Ending::cause(Cause::Data)
                    .detail(format!("its output may not be uploaded: {said}"));
            }
        }
        None => attempts.push(end_of_all(End {
            at,
            ending: told.clone(),
        })),
    }
}

/// Ends the job after a preemption or before a retry, because the service does not start it again.
fn end_after_attempts(attempts: &mut Vec<AttemptReport>, job: &JobView, at: Moment, told: Ending) {
    let last = attempts
        .iter()
        .rev()
        .find_map(|of| of.end.as_ref().map(|end| end.ending.clone()));
    if let Some(ending) =
        last.filter(|ending| ending.cause.is_some() && attempts.iter().all(|of| of.attempt > 0))
    {
        let ending = match (ending.cause, told.cause) {
            (_, Some(Cause::ByUser)) | (Some(Cause::Preempted), Some(Cause::TimeLimit)) => told,
            // It was started again, and failed for another reason.
            (Some(Cause::Preempted), Some(cause))
                if job.state == NativeState::Failed && cause != Cause::Preempted =>
            {
                Ending {
                    cause: Some(if cause == Cause::NotStarted {
                        Cause::NodeFailed
                    } else {
                        cause
                    }),
                    ..told
                }
            }
            (Some(Cause::Preempted), _) => {
                ending.detail("preempted, and the service did not start it again")
            }
            _ => ending,
        };
        attempts.push(end_of_all(End { at, ending }));
    }
}

/// An end of the job, not of one of its attempts.
const fn end_of_all(end: End) -> AttemptReport {
    AttemptReport {
        attempt: 0,
        claim: None,
        started: None,
        held: None,
        end: Some(end),
    }
}
