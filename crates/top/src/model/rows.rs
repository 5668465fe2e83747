//! Runs and sweeps as the list shows them, read from what the interface answers.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use towline_core::RunId;
use towline_core::counts::PhaseCounts;
use towline_core::reason::Outcome;
use towline_core::state::Phase;
use towline_core::time::Moment;

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) name: String,
    pub(crate) experiment: Option<String>,
    pub(crate) cluster: String,
    #[serde(deserialize_with = "phase")]
    pub(crate) state: Phase,
    pub(crate) reason: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) tier: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) sweep: Option<RunId>,
    #[serde(default)]
    pub(crate) parameters: serde_json::Map<String, serde_json::Value>,
    pub(crate) command: String,
    pub(crate) gpus: u32,
    pub(crate) nodes: u32,
    pub(crate) ranks: u32,
    pub(crate) cancel_requested: bool,
    pub(crate) cancel_refused: Option<String>,
    #[serde(default)]
    pub(crate) on_hold: bool,
    #[serde(default, deserialize_with = "moment")]
    pub(crate) held_until: Option<Moment>,
    #[serde(default, deserialize_with = "moment")]
    pub(crate) created: Option<Moment>,
    #[serde(default, deserialize_with = "moment")]
    pub(crate) started: Option<Moment>,
    #[serde(default, deserialize_with = "moment")]
    pub(crate) ended: Option<Moment>,
    pub(crate) resubmits: Option<RunId>,
    pub(crate) url: Option<String>,
    pub(crate) native_state: Option<String>,
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    pub(crate) native_reason: Option<String>,
    pub(crate) stale: Option<String>,
}

/// The runs of a sweep in one row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Sweep {
    pub(crate) id: RunId,
    #[serde(deserialize_with = "counts")]
    pub(crate) states: PhaseCounts,
    #[serde(default, deserialize_with = "moment")]
    pub(crate) started: Option<Moment>,
    #[serde(default, deserialize_with = "moment")]
    pub(crate) ended: Option<Moment>,
    pub(crate) first: Run,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Row {
    Run(Box<Run>),
    Sweep(Box<Sweep>),
}

/// Some rows of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct Window {
    /// The number of the first row.
    #[serde(skip)]
    pub(crate) offset: u64,
    pub(crate) total: u64,
    #[serde(deserialize_with = "counts")]
    pub(crate) states: PhaseCounts,
    pub(crate) rows: Vec<Row>,
}

fn phase<'d, D: Deserializer<'d>>(from: D) -> Result<Phase, D::Error> {
    let word = String::deserialize(from)?;
    Phase::from_word(&word).ok_or_else(|| serde::de::Error::custom(format!("no state: {word}")))
}

fn counts<'d, D: Deserializer<'d>>(from: D) -> Result<PhaseCounts, D::Error> {
    let mut counts = PhaseCounts::default();
    for (word, runs) in BTreeMap::<String, u64>::deserialize(from)? {
        if let Some(phase) = Phase::from_word(&word) {
            counts.add(phase, runs);
        }
    }
    Ok(counts)
}

/// A moment that cannot be read is not known.
fn moment<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Moment>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.as_deref().and_then(moment_of))
}

pub(super) fn moment_of(text: &str) -> Option<Moment> {
    let found = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(found.unix_timestamp_nanos() / 1_000_000)
        .ok()
        .map(Moment)
}

/// What a row tells of its state: the state, or a condition that says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Phase(Phase),
    Cancelling,
    FailedAndHeld,
    OnHold,
}

impl Condition {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Phase(phase) => phase.word(),
            Self::Cancelling => "cancelling",
            Self::FailedAndHeld => "failed, held",
            Self::OnHold => "on hold",
        }
    }
}

impl Run {
    /// A run of the stream. `None` if it cannot be read, which no run of this program is.
    pub(crate) fn of_stream(run: &towline_wire::report::Run) -> Option<Self> {
        serde_json::from_value(serde_json::to_value(run).ok()?).ok()
    }

    pub(crate) fn condition(&self) -> Condition {
        if self.cancel_requested && !self.state.is_ended() {
            Condition::Cancelling
        } else if self.held_until.is_some() && !self.state.is_ended() {
            Condition::FailedAndHeld
        } else if self.on_hold {
            Condition::OnHold
        } else {
            Condition::Phase(self.state)
        }
    }

    /// Why it is in its state, in a few words.
    pub(crate) fn because(&self) -> Option<&str> {
        let refused = self.cancel_refused.as_deref();
        let detail = self.detail.as_deref().or(self.reason.as_deref());
        let waits = self.native_reason.as_deref();
        self.stale.as_deref().or(refused).or(detail).or(waits)
    }
}

impl Row {
    pub(crate) fn id(&self) -> &RunId {
        match self {
            Self::Run(run) => &run.id,
            Self::Sweep(sweep) => &sweep.id,
        }
    }

    /// The run, or the first of the sweep, which tells what its runs share.
    pub(crate) fn run(&self) -> &Run {
        match self {
            Self::Run(run) => run,
            Self::Sweep(sweep) => &sweep.first,
        }
    }

    pub(crate) fn condition(&self) -> Condition {
        match self {
            Self::Run(run) => run.condition(),
            Self::Sweep(sweep) => {
                let drafted = Phase::Drafted;
                Condition::Phase(sweep.states.worst().unwrap_or(drafted))
            }
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        match self {
            Self::Run(run) => run.state.is_ended(),
            Self::Sweep(sweep) => sweep.states.active() == 0,
        }
    }

    /// Whether something of it waits that could be put on hold.
    pub(crate) fn waits(&self) -> bool {
        let waiting = [
            Phase::Drafted,
            Phase::Staging,
            Phase::Submitting,
            Phase::Queued,
        ];
        match self {
            Self::Run(run) => waiting.contains(&run.state),
            Self::Sweep(sweep) => waiting.iter().any(|phase| sweep.states.of(*phase) > 0),
        }
    }

    /// How long its latest attempt takes or took.
    pub(crate) fn took(&self, now: Moment) -> Option<u64> {
        let (started, ended) = match self {
            Self::Run(run) => (run.started, run.ended),
            Self::Sweep(sweep) => (sweep.started, sweep.ended),
        };
        let started = started?;
        if ended.is_none() && self.is_ended() {
            return None;
        }
        Some(ended.unwrap_or(now).since(started))
    }

    pub(crate) fn has_failed(&self) -> bool {
        let bad = [Phase::Ended(Outcome::Failed), Phase::Ended(Outcome::Lost)];
        match self {
            Self::Run(run) => bad.contains(&run.state),
            Self::Sweep(sweep) => bad.iter().any(|phase| sweep.states.of(*phase) > 0),
        }
    }
}
