//! The events of a run. Every change of state is one of these, and is written before it shows.

use crate::RunId;
use crate::change::Edit;
use crate::reason::Ending;
use crate::time::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One event in the life of a run. `…Intent` is written before the act, its counterpart after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// It is written down.
    Drafted,
    /// Its code and its data are about to be sent.
    StageIntent,
    /// It is about to be given to the cluster.
    SubmitIntent,
    /// The cluster has accepted it; `native` is its own id for the job.
    Submitted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<String>,
    },
    /// Attempt `attempt` is about to be given to `runner`. With `durable` the intent is on disk
    /// before the runner gets it, so the runner's claim need not be.
    AttemptIntent {
        attempt: u32,
        runner: String,
        /// The GPUs it is given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gpus: Vec<u32>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        durable: bool,
    },
    /// The runner is gone and has not claimed the attempt, which therefore never started.
    AttemptUnclaimed { attempt: u32 },
    /// The runner has begun the attempt.
    AttemptStarted { attempt: u32 },
    /// A rank failed and the nodes are kept for the user until `until`.
    AttemptHeld {
        attempt: u32,
        until: Moment,
        ending: Ending,
    },
    /// The attempt ended and another will follow.
    AttemptEnded {
        attempt: u32,
        ending: Ending,
        counted: bool,
    },
    /// The user asked to cancel it; the end is not confirmed yet.
    CancelIntent {
        /// The agent that asked for the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The cluster refuses to cancel it, for this reason; it goes on.
    CancelRefused { why: String },
    /// A higher tier needs its resources; the attempt is being ended.
    PreemptIntent { attempt: u32 },
    /// The user put it on hold; it does not start until it is resumed.
    PutOnHold,
    /// The user resumed it.
    Resumed,
    /// A run that it waited for has ended as it had to.
    AfterMet { before: RunId },
    /// The user changed its tier, time limit or size; the next attempt has it.
    Edited { edit: Box<Edit> },
    /// The user changed its tags; these are all of them.
    Tagged { tags: Vec<String> },
    /// The run ended with this attempt (0: it never started).
    Ended { attempt: u32, ending: Ending },
    /// The cluster says with authority that it has never had the job, and there is no end record.
    NeverHeard,
    /// The cluster reports another state for it.
    Observed { native: Box<crate::state::Native> },
}

impl RunEvent {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Drafted => "drafted",
            Self::StageIntent => "stage_intent",
            Self::SubmitIntent => "submit_intent",
            Self::Submitted { .. } => "submitted",
            Self::AttemptIntent { .. } => "attempt_intent",
            Self::AttemptUnclaimed { .. } => "attempt_unclaimed",
            Self::AttemptStarted { .. } => "attempt_started",
            Self::AttemptHeld { .. } => "attempt_held",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::CancelIntent { .. } => "cancel_intent",
            Self::CancelRefused { .. } => "cancel_refused",
            Self::PreemptIntent { .. } => "preempt_intent",
            Self::PutOnHold => "put_on_hold",
            Self::Resumed => "resumed",
            Self::AfterMet { .. } => "after_met",
            Self::Edited { .. } => "edited",
            Self::Tagged { .. } => "tagged",
            Self::Ended { .. } => "ended",
            Self::NeverHeard => "never_heard",
            Self::Observed { .. } => "observed",
        }
    }
}

/// An event with its run, place in the stream and moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// The number of the event in the history.
    pub sequence: i64,
    /// The run.
    pub run: RunId,
    /// When it was recorded.
    pub at: Moment,
    #[serde(flatten)]
    pub event: RunEvent,
}
