//! From a cluster's report of a run to events of its history, and to a state.

use super::{AttemptReport, RunReport};
use crate::event::RunEvent;
use crate::job::RetryPolicy;
use crate::reason::Cause;
use crate::retry::{Next, after};
use crate::state::{Phase, RunState, Step, cancelled, job_runner, reduce};
use crate::time::Moment;

/// The events of a report, in order and with their times. The caller applies those that the history
/// does not have yet.
pub fn events(report: &RunReport, policy: Option<&RetryPolicy>) -> Vec<(RunEvent, Option<Moment>)> {
    let mut events = Vec::new();
    if let Some(native) = &report.native {
        events.push((
            RunEvent::Observed {
                native: Box::new(native.clone()),
            },
            None,
        ));
    }
    let mut counted = 0;
    // Attempt 0 is the end of a run that no job carries any more: it comes after the attempts.
    let (last, begun): (Vec<_>, Vec<_>) = report.attempts.iter().partition(|of| of.attempt == 0);
    for of in begun.into_iter().chain(last) {
        let attempt = of.attempt;
        events.extend(progress(of));
        let Some(end) = &of.end else { continue };
        counted += 1;
        let ending = end.ending.clone();
        let event = match after(policy, &ending, counted, report.cancelled) {
            Next::Requeue {
                counted: is_counted,
            } if attempt > 0 => {
                counted -= u32::from(!is_counted);
                RunEvent::AttemptEnded {
                    attempt,
                    ending,
                    counted: is_counted,
                }
            }
            // A cancelled run ends as cancelled, even if a preemption came first.
            _ if report.cancelled && ending.cause == Some(Cause::Preempted) => RunEvent::Ended {
                attempt,
                ending: cancelled(),
            },
            _ => RunEvent::Ended { attempt, ending },
        };
        events.push((event, Some(end.at)));
    }
    if report.is_lost {
        events.push((RunEvent::NeverHeard, None));
    }
    let last_ended = report.attempts.last().is_some_and(|of| of.end.is_some());
    if report.cancelled
        && last_ended
        && !events
            .iter()
            .any(|(event, _)| matches!(event, RunEvent::Ended { .. }))
    {
        let attempt = report.attempts.last().map_or(0, |of| of.attempt);
        events.push((
            RunEvent::Ended {
                attempt,
                ending: cancelled(),
            },
            None,
        ));
    }
    events
}

/// The events of an attempt before its end.
fn progress(of: &AttemptReport) -> Vec<(RunEvent, Option<Moment>)> {
    let mut events = Vec::new();
    let attempt = of.attempt;
    if let Some(claim) = &of.claim {
        let intent = RunEvent::AttemptIntent {
            attempt,
            runner: job_runner(&claim.by.job),
            gpus: Vec::new(),
            durable: false,
        };
        events.push((intent, Some(claim.at)));
    }
    if let Some(started) = &of.started {
        events.push((RunEvent::AttemptStarted { attempt }, Some(started.at)));
    }
    if let Some(held) = of.held.as_ref().filter(|_| of.end.is_none()) {
        events.push((
            RunEvent::AttemptHeld {
                attempt,
                until: held.until,
                ending: held.ending.clone(),
            },
            Some(held.at),
        ));
    }
    events
}

/// The state of a report, by the one transition function; `None` if the cluster has never had the
/// run.
pub fn state_of(report: &RunReport) -> Option<RunState> {
    if report.is_unknown {
        return None;
    }
    if let Some(state) = &report.state {
        return Some((**state).clone());
    }
    let mut state = RunState {
        phase: Phase::Queued,
        ..RunState::default()
    };
    for (event, _) in events(report, None) {
        if let Ok(Step::Changed(next)) = reduce(&state, &event) {
            state = *next;
        }
    }
    Some(state)
}
