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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunId;
    use crate::cluster::{Claim, End, JobStart, Started};
    use crate::reason::Ending;

    fn attempt(attempt: u32, cause: Cause) -> AttemptReport {
        let at = Moment(i64::from(attempt));
        let begun = (attempt > 0).then_some(at);
        AttemptReport {
            attempt,
            claim: begun.map(|at| Claim {
                by: JobStart {
                    job: "7".to_owned(),
                    restarts: 0,
                },
                at,
                hosts: Vec::new(),
                port: 1,
            }),
            started: begun.map(|at| Started { at }),
            held: None,
            end: Some(End {
                at,
                ending: Ending::cause(cause),
            }),
        }
    }

    /// The events of these attempts, with one retry after a failed node.
    fn told(attempts: Vec<AttemptReport>, cancelled: bool) -> Vec<RunEvent> {
        let report = RunReport {
            run: RunId::new("job", 1, 2),
            is_unknown: false,
            is_lost: false,
            cancelled,
            attempts,
            native: None,
            state: None,
        };
        let policy = RetryPolicy {
            when: vec![Cause::NodeFailed],
            max: Some(2),
        };
        let events = events(&report, Some(&policy));
        events.into_iter().map(|(event, _)| event).collect()
    }

    fn words(events: &[RunEvent]) -> Vec<&str> {
        events.iter().map(RunEvent::word).collect()
    }

    #[test]
    fn attempts_are_told_in_order_and_the_end_without_a_job_last() {
        let failed = |number| attempt(number, Cause::NodeFailed);
        let events = told(vec![failed(0), failed(1)], false);
        assert_eq!(
            words(&events),
            [
                "attempt_intent",
                "attempt_started",
                "attempt_ended",
                "ended"
            ]
        );
        assert!(matches!(events[3], RunEvent::Ended { attempt: 0, .. }));
        // No attempt follows the end of a run that no job carries, whatever the policy says.
        assert_eq!(words(&told(vec![failed(0)], false)), ["ended"]);
    }

    #[test]
    fn preemptions_do_not_use_up_the_retries() {
        let attempts = vec![
            attempt(1, Cause::Preempted),
            attempt(2, Cause::Preempted),
            attempt(3, Cause::NodeFailed),
            attempt(4, Cause::NodeFailed),
        ];
        let mut events = told(attempts, false);
        events.retain(|event| {
            matches!(
                event,
                RunEvent::AttemptEnded { .. } | RunEvent::Ended { .. }
            )
        });
        assert_eq!(
            words(&events),
            ["attempt_ended", "attempt_ended", "attempt_ended", "ended"]
        );
    }

    #[test]
    fn a_cancelled_run_ends_as_cancelled_unless_it_ended_by_itself() {
        let cause = |cause| match told(vec![attempt(1, cause)], true).pop() {
            Some(RunEvent::Ended { ending, .. }) => ending.cause,
            other => panic!("{other:?}"),
        };
        assert_eq!(cause(Cause::Preempted), Some(Cause::ByUser));
        assert_eq!(cause(Cause::ExitCode), Some(Cause::ExitCode));
    }
}
