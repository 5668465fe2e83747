//! The states of a run and the one function that moves between them.

use crate::after::After;
use crate::change::Edit;
use crate::event::RunEvent;
use crate::reason::{Cause, Ending, Outcome};
use crate::time::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Drafted,
    Staging,
    Submitting,
    Queued,
    Running,
    Ended(Outcome),
}

impl Phase {
    /// The word that is shown and stored.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Drafted => "drafted",
            Self::Staging => "staging",
            Self::Submitting => "submitting",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ended(outcome) => outcome.word(),
        }
    }
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.word() == word)
    }
    pub const ALL: [Self; 9] = [
        Self::Drafted,
        Self::Staging,
        Self::Submitting,
        Self::Queued,
        Self::Running,
        Self::Ended(Outcome::Succeeded),
        Self::Ended(Outcome::Failed),
        Self::Ended(Outcome::Cancelled),
        Self::Ended(Outcome::Lost),
    ];
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

/// Begins the name of a runner that is a job of a scheduler; its id follows.
const JOB_RUNNER: &str = "job ";

/// The name of the runner of a scheduler's job.
pub fn job_runner(job: &str) -> String {
    format!("{JOB_RUNNER}{job}")
}

/// The known state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    pub phase: Phase,
    /// The latest attempt that has begun or is about to; 0 before the first.
    pub attempt: u32,
    /// Starts that count towards `retry.max`.
    pub counted_starts: u32,
    /// The runner that the current attempt was handed to, between its intent and its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The GPUs of the current attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// The current attempt's intent is on disk, and its claim may not be. After a power cut, an
    /// attempt without a claim may have begun all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claim_may_be_lost: bool,
    pub cancel_requested: bool,
    /// Why the cluster refused to cancel it, when it was last asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_refused: Option<String>,
    #[serde(default)]
    pub preempt_requested: bool,
    /// The nodes are held until then because a rank failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Moment>,
    /// The user put it on hold: it does not start until it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_hold: bool,
    /// The runs that must end before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// The user's changes since its submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Box<Edit>>,
    /// How the run ended, or its last attempt did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The cluster's own id and state of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Box<Native>>,
}

/// A cluster's own description of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Native {
    /// Its id there: `1234`, `1234_7`.
    pub id: String,
    /// Its state there: `PENDING`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// Why it is in that state: `Resources`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The hosts it has, by node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// When it is expected to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Moment>,
    /// Its page in the cluster's portal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl RunState {
    /// The scheduler's id of the job that carries the current attempt.
    pub fn job_of_scheduler(&self) -> Option<&str> {
        self.runner.as_deref()?.strip_prefix(JOB_RUNNER)
    }

    /// Whether it must not begin, because it is on hold or waits for other runs.
    pub fn is_blocked(&self) -> bool {
        self.on_hold || !self.after.is_empty()
    }

    /// Whether it has not begun, or waits for its next attempt.
    pub const fn is_changeable(&self) -> bool {
        matches!(self.phase, Phase::Drafted | Phase::Queued)
            && self.runner.is_none()
            && !self.cancel_requested
    }
}

impl Default for RunState {
    fn default() -> Self {
        Self {
            phase: Phase::Drafted,
            attempt: 0,
            counted_starts: 0,
            runner: None,
            gpus: Vec::new(),
            claim_may_be_lost: false,
            cancel_requested: false,
            cancel_refused: None,
            preempt_requested: false,
            held_until: None,
            on_hold: false,
            after: Vec::new(),
            edited: None,
            ending: None,
            native: None,
        }
    }
}

/// The effect of an event on a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Changed(Box<RunState>),
    /// Known already, or from a past attempt: nothing to write.
    Ignored,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` cannot follow in state `{phase}` (attempt {attempt})")]
pub struct Illegal {
    pub phase: &'static str,
    pub attempt: u32,
    pub event: &'static str,
}

/// The only way a run changes state. Total and pure. An ended run stays ended, and an event seen
/// twice is ignored. An event that can only come from a defect is [`Illegal`].
#[expect(clippy::too_many_lines, reason = "one table of transitions")]
pub fn reduce(state: &RunState, event: &RunEvent) -> Result<Step, Illegal> {
    use Phase::{Drafted, Ended, Queued, Running, Staging, Submitting};
    let illegal = || {
        Err(Illegal {
            phase: state.phase.word(),
            attempt: state.attempt,
            event: event.word(),
        })
    };
    let changed = |change: &dyn Fn(&mut RunState)| {
        let mut next = Box::new(state.clone());
        change(&mut next);
        Ok(Step::Changed(next))
    };
    let move_to = |phase: Phase| changed(&|next| next.phase = phase);

    match (state.phase, event) {
        (Ended(_), _) => Ok(Step::Ignored),

        (Drafted, RunEvent::StageIntent) => move_to(Staging),
        (Drafted | Staging, RunEvent::SubmitIntent) => move_to(Submitting),
        (Drafted | Staging | Submitting, RunEvent::Submitted { native }) => changed(&|next| {
            next.phase = Queued;
            next.native = native.clone().map(|id| {
                Box::new(Native {
                    id,
                    ..Native::default()
                })
            });
        }),
        (
            _,
            RunEvent::Drafted
            | RunEvent::StageIntent
            | RunEvent::SubmitIntent
            | RunEvent::Submitted { .. },
        ) => Ok(Step::Ignored),

        (
            Queued,
            RunEvent::AttemptIntent {
                attempt,
                runner,
                gpus,
                durable,
            },
        ) if *attempt == state.attempt + 1 && state.runner.is_none() => changed(&|next| {
            next.attempt = *attempt;
            next.counted_starts += 1;
            next.runner = Some(runner.clone());
            next.gpus.clone_from(gpus);
            next.claim_may_be_lost = *durable;
        }),
        (_, RunEvent::AttemptIntent { attempt, .. }) if *attempt <= state.attempt => {
            Ok(Step::Ignored)
        }
        (_, RunEvent::AttemptIntent { .. }) => illegal(),

        (Queued, RunEvent::AttemptUnclaimed { attempt })
            if *attempt == state.attempt && state.runner.is_some() =>
        {
            changed(&|next| {
                next.attempt -= 1;
                next.counted_starts = next.counted_starts.saturating_sub(1);
                next.runner = None;
                next.gpus.clear();
            })
        }
        (_, RunEvent::AttemptUnclaimed { .. }) => Ok(Step::Ignored),

        (Queued, RunEvent::AttemptStarted { attempt })
            if *attempt == state.attempt && state.runner.is_some() =>
        {
            move_to(Running)
        }
        (_, RunEvent::AttemptStarted { attempt }) if *attempt <= state.attempt => Ok(Step::Ignored),
        (_, RunEvent::AttemptStarted { .. }) => illegal(),

        (
            Queued | Running,
            RunEvent::AttemptHeld {
                attempt,
                until,
                ending,
            },
        ) if *attempt == state.attempt => changed(&|next| {
            next.phase = Running;
            next.held_until = Some(*until);
            next.ending = Some(ending.clone());
        }),
        (_, RunEvent::AttemptHeld { .. }) => Ok(Step::Ignored),

        (
            Queued | Running,
            RunEvent::AttemptEnded {
                attempt,
                ending,
                counted,
            },
        ) if *attempt == state.attempt && state.runner.is_some() => changed(&|next| {
            next.phase = Queued;
            next.runner = None;
            next.gpus.clear();
            next.preempt_requested = false;
            next.held_until = None;
            next.ending = Some(ending.clone());
            if !counted {
                next.counted_starts = next.counted_starts.saturating_sub(1);
            }
        }),
        (_, RunEvent::AttemptEnded { attempt, .. }) if *attempt <= state.attempt => {
            Ok(Step::Ignored)
        }
        (_, RunEvent::AttemptEnded { .. }) => illegal(),

        (_, RunEvent::CancelIntent { .. }) if state.cancel_requested => Ok(Step::Ignored),
        (_, RunEvent::CancelIntent { .. }) => changed(&|next| {
            next.cancel_requested = true;
            next.cancel_refused = None;
        }),
        (_, RunEvent::CancelRefused { why }) if state.cancel_requested => changed(&|next| {
            next.cancel_requested = false;
            next.cancel_refused = Some(why.clone());
        }),
        (_, RunEvent::CancelRefused { .. }) => Ok(Step::Ignored),

        (Queued | Running, RunEvent::PreemptIntent { attempt })
            if *attempt == state.attempt && !state.preempt_requested && state.runner.is_some() =>
        {
            changed(&|next| next.preempt_requested = true)
        }
        (_, RunEvent::PreemptIntent { .. }) => Ok(Step::Ignored),

        (_, RunEvent::PutOnHold) if state.is_changeable() && !state.on_hold => {
            changed(&|next| next.on_hold = true)
        }
        (_, RunEvent::Resumed) if state.on_hold => changed(&|next| next.on_hold = false),
        (_, RunEvent::AfterMet { before })
            if state.after.iter().any(|after| after.run == *before) =>
        {
            changed(&|next| next.after.retain(|after| after.run != *before))
        }
        (_, RunEvent::Edited { edit })
            if state.is_changeable() && state.edited.as_ref() != Some(edit) =>
        {
            changed(&|next| next.edited = Some(edit.clone()))
        }
        // Tags are no part of the state.
        (
            _,
            RunEvent::PutOnHold
            | RunEvent::Resumed
            | RunEvent::AfterMet { .. }
            | RunEvent::Edited { .. }
            | RunEvent::Tagged { .. },
        ) => Ok(Step::Ignored),

        (_, RunEvent::Ended { attempt, ending })
            if *attempt == state.attempt || state.runner.is_none() =>
        {
            changed(&|next| {
                next.phase = Ended(ending.outcome());
                next.runner = None;
                next.gpus.clear();
                next.held_until = None;
                next.ending = Some(ending.clone());
            })
        }
        // The end of an attempt that another has already followed.
        (_, RunEvent::Ended { attempt, .. }) if *attempt < state.attempt => Ok(Step::Ignored),
        (_, RunEvent::Ended { .. }) => illegal(),

        (Queued | Running | Submitting, RunEvent::NeverHeard) => changed(&|next| {
            next.phase = Ended(Outcome::Lost);
            next.runner = None;
            next.gpus.clear();
        }),
        (_, RunEvent::NeverHeard) => Ok(Step::Ignored),

        (_, RunEvent::Observed { native }) if state.native.as_ref() == Some(native) => {
            Ok(Step::Ignored)
        }
        (_, RunEvent::Observed { native }) => changed(&|next| next.native = Some(native.clone())),
    }
}

/// The ending of a cancelled attempt. The user's request counts more than how the ranks ended.
pub fn cancelled() -> Ending {
    Ending::cause(Cause::ByUser)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = RunEvent> {
        let attempt = 0u32..4;
        let ending = prop_oneof![
            Just(Ending::success()),
            Just(Ending::cause(Cause::ExitCode)),
            Just(Ending::cause(Cause::Preempted)),
            Just(cancelled())
        ];
        prop_oneof![
            Just(RunEvent::Drafted),
            Just(RunEvent::StageIntent),
            Just(RunEvent::SubmitIntent),
            Just(RunEvent::Submitted { native: None }),
            attempt.clone().prop_map(|attempt| RunEvent::AttemptIntent {
                attempt,
                runner: "r".into(),
                gpus: Vec::new(),
                durable: false
            }),
            attempt
                .clone()
                .prop_map(|attempt| RunEvent::AttemptUnclaimed { attempt }),
            attempt
                .clone()
                .prop_map(|attempt| RunEvent::AttemptStarted { attempt }),
            (attempt.clone(), ending.clone()).prop_map(|(attempt, ending)| RunEvent::AttemptHeld {
                attempt,
                until: Moment(9),
                ending
            }),
            (attempt.clone(), ending.clone(), any::<bool>()).prop_map(
                |(attempt, ending, counted)| RunEvent::AttemptEnded {
                    attempt,
                    ending,
                    counted
                }
            ),
            Just(RunEvent::CancelIntent { by: None }),
            Just(RunEvent::CancelRefused { why: "no".into() }),
            attempt
                .clone()
                .prop_map(|attempt| RunEvent::PreemptIntent { attempt }),
            (attempt, ending).prop_map(|(attempt, ending)| RunEvent::Ended { attempt, ending }),
            Just(RunEvent::NeverHeard),
            Just(RunEvent::PutOnHold),
            Just(RunEvent::Resumed),
            Just(RunEvent::AfterMet {
                before: crate::RunId::new("a", 1, 1)
            }),
            Just(RunEvent::Edited {
                edit: Box::new(Edit {
                    time: Some(crate::quantity::Span(60)),
                    ..Edit::default()
                })
            }),
            Just(RunEvent::Observed {
                native: Box::new(Native {
                    id: "1".into(),
                    ..Native::default()
                })
            }),
        ]
    }

    proptest! {
        #[test]
        fn an_ended_run_stays_ended_and_attempts_only_grow(events in prop::collection::vec(any_event(), 0..60)) {
            let mut state = RunState::default();
            let mut started = std::collections::HashSet::new();
            for event in &events {
                let Ok(Step::Changed(next)) = reduce(&state, event) else { continue };
                prop_assert!(!state.phase.is_ended(), "left an ended state by {event:?}");
                let unclaimed = matches!(event, RunEvent::AttemptUnclaimed { .. });
                prop_assert!(next.attempt >= state.attempt || unclaimed);
                if matches!(event, RunEvent::AttemptStarted { .. }) {
                    prop_assert!(started.insert(next.attempt), "attempt {} started \
                        twice", next.attempt);
                }
                // Ended runs and runs between attempts have no runner.
                prop_assert!(!(next.phase.is_ended() && next.runner.is_some()));
                state = *next;
            }
        }

        #[test]
        fn an_event_seen_twice_is_ignored(events in prop::collection::vec(any_event(), 0..40)) {
            let mut state = RunState::default();
            for event in &events {
                if let Ok(Step::Changed(next)) = reduce(&state, event) {
                    prop_assert_eq!(reduce(&next, event).map(|step| match step {
                        Step::Ignored => next.clone(),
                        Step::Changed(again) => again,
                    }), Ok(next.clone()));
                    state = *next;
                }
            }
        }
    }

    #[test]
    fn words_read_back() {
        for phase in Phase::ALL {
            assert_eq!(Phase::from_word(phase.word()), Some(phase));
        }
    }

    /// A run with an attempt, and its runner if it has one.
    fn at_attempt(attempt: u32, runner: Option<&str>) -> RunState {
        RunState {
            phase: Phase::Queued,
            attempt,
            runner: runner.map(str::to_owned),
            ..RunState::default()
        }
    }

    fn is_changed(state: &RunState, event: &RunEvent) -> bool {
        matches!(reduce(state, event), Ok(Step::Changed(_)))
    }

    #[test]
    fn an_attempt_ends_once_and_only_if_it_was_begun() {
        let ended = |attempt| RunEvent::AttemptEnded {
            attempt,
            ending: Ending::cause(Cause::Preempted),
            counted: false,
        };
        let carried = at_attempt(2, Some("r"));
        assert!(is_changed(&carried, &ended(2)));
        assert_eq!(reduce(&carried, &ended(1)), Ok(Step::Ignored));
        assert!(reduce(&carried, &ended(3)).is_err());
        let between = at_attempt(2, None);
        assert_eq!(reduce(&between, &ended(2)), Ok(Step::Ignored));
    }

    #[test]
    fn a_preemption_is_of_the_present_attempt_and_asked_for_once() {
        let preempt = |attempt| RunEvent::PreemptIntent { attempt };
        let carried = at_attempt(2, Some("r"));
        assert!(is_changed(&carried, &preempt(2)));
        let asked = RunState {
            preempt_requested: true,
            ..carried.clone()
        };
        for (state, attempt) in [
            (&carried, 1),
            (&carried, 3),
            (&asked, 2),
            (&at_attempt(2, None), 2),
        ] {
            assert_eq!(reduce(state, &preempt(attempt)), Ok(Step::Ignored));
        }
    }

    #[test]
    fn an_end_of_an_earlier_attempt_is_late_and_of_a_later_one_illegal() {
        let ended = |attempt| RunEvent::Ended {
            attempt,
            ending: Ending::success(),
        };
        let carried = at_attempt(2, Some("r"));
        assert!(is_changed(&carried, &ended(2)));
        assert_eq!(reduce(&carried, &ended(1)), Ok(Step::Ignored));
        assert!(reduce(&carried, &ended(3)).is_err());
        assert!(is_changed(&at_attempt(2, None), &ended(0)));
    }
}
