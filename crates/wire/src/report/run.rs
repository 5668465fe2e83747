//! A run, as every verb shows it.

use super::time::{Time, Values};
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;
use towline_core::after::After;
use towline_core::obstacle::Obstacle;
use towline_core::reason::{Cause, Ending};
use towline_core::record::{AttemptRecord, Freshness, RunRecord};
use towline_core::state::Phase;

/// A run, as every verb shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Run {
    /// Its id, for life.
    pub id: RunId,
    /// Its name, as the job gives it.
    pub name: String,
    /// The experiment that it belongs to.
    pub experiment: Option<String>,
    /// The cluster that it was submitted to.
    pub cluster: String,
    /// Its state in one word.
    #[schemars(extend("enum" = Phase::ALL.map(Phase::word)))]
    pub state: &'static str,
    /// Why it did not end well: `exit_code`, `signal`, `time_limit`, … Set for ended and held runs.
    pub reason: Option<&'static str>,
    /// The reason in one line.
    pub detail: Option<String>,
    /// What kept its program from starting: `no_room`, `code_layout` or `stage_not_shared`. Absent
    /// if it is not known, or the program started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<&'static str>,
    /// The exit code of its program; 128+n for a signal.
    pub exit_code: Option<i32>,
    /// The number of the latest attempt; 0 before the first.
    pub attempt: u32,
    /// `premium`, `standard` or `basic`.
    pub tier: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The id of the sweep that it belongs to.
    pub sweep: Option<RunId>,
    /// Its values of the sweep, as text.
    pub parameters: Values,
    /// Its command in one line.
    pub command: String,
    /// The number of its GPUs, on all nodes together.
    pub gpus: u32,
    /// The number of its nodes.
    pub nodes: u32,
    /// The number of its ranks.
    pub ranks: u32,
    /// Somebody asked for its end. It may not have ended yet.
    pub cancel_requested: bool,
    /// Why its cluster refused to end it. Absent if it did not refuse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_refused: Option<String>,
    /// Somebody put it on hold: it does not start until it is resumed. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_hold: bool,
    /// The runs that must end before it begins. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// Its nodes are kept for `tow ssh` until then.
    pub held_until: Option<Time>,
    /// When it was submitted.
    pub created: Time,
    /// When its latest attempt began.
    pub started: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// The run or sweep that this one repeats.
    pub resubmits: Option<RunId>,
    /// Its page in the cluster's portal. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The cluster's own word for its state, as last heard. Absent if the cluster has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_state: Option<String>,
    /// The host names of the nodes that it runs or ran on. Absent if they are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Why the cluster keeps it waiting, in the cluster's own words. Absent if it gives no reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_reason: Option<String>,
    /// If not null, the state may be out of date since then.
    pub stale_since: Option<Time>,
    /// Why the state may be out of date. Absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
}

impl Run {
    /// Whether it has ended.
    pub fn is_ended(&self) -> bool {
        Phase::from_word(self.state).is_some_and(Phase::is_ended)
    }
}

impl From<&RunRecord> for Run {
    fn from(record: &RunRecord) -> Self {
        let state = &record.state;
        let ending: Option<&Ending> = state
            .ending
            .as_ref()
            .filter(|_| state.phase.is_ended() || state.held_until.is_some());
        let native = state.native.as_deref();
        let (stale_since, stale) = match &record.freshness {
            Freshness::Fresh => (None, None),
            Freshness::Stale { since, why } => (Some(Time(*since)), Some(why.clone())),
        };
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            experiment: record.experiment.clone(),
            cluster: record.cluster.clone(),
            state: state.phase.word(),
            reason: ending.and_then(|ending| ending.cause).map(Cause::word),
            detail: ending
                .filter(|ending| ending.cause.is_some())
                .map(ToString::to_string),
            obstacle: ending.and_then(Ending::known_obstacle).map(Obstacle::word),
            exit_code: ending.and_then(|ending| ending.exit_code),
            attempt: state.attempt,
            tier: record.tier.clone(),
            tags: record.tags.clone(),
            sweep: record.sweep.clone(),
            parameters: Values(record.parameters.clone()),
            command: record.command.clone(),
            gpus: record.gpus,
            nodes: record.nodes,
            ranks: record.world,
            cancel_requested: state.cancel_requested,
            cancel_refused: state
                .cancel_refused
                .clone()
                .filter(|_| !state.phase.is_ended()),
            on_hold: state.on_hold && !state.phase.is_ended(),
            after: if state.phase.is_ended() {
                Vec::new()
            } else {
                state.after.clone()
            },
            held_until: state.held_until.map(Time),
            created: Time(record.created),
            started: record.started.map(Time),
            ended: record.ended.map(Time),
            resubmits: record.resubmits.clone(),
            url: native.and_then(|native| native.url.clone()),
            native_state: native
                .map(|native| native.word.clone())
                .filter(|word| !word.is_empty()),
            hosts: native
                .map(|native| native.hosts.clone())
                .unwrap_or_default(),
            native_reason: native
                .map(|native| native.reason.clone())
                .filter(|reason| !matches!(reason.as_str(), "" | "None")),
            stale_since,
            stale,
        }
    }
}

/// Runs, newest first.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Runs {
    /// The runs.
    pub runs: Vec<Run>,
}

impl FromIterator<Run> for Runs {
    fn from_iter<I: IntoIterator<Item = Run>>(runs: I) -> Self {
        Self {
            runs: runs.into_iter().collect(),
        }
    }
}

/// One start of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it began.
    pub started: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// Why it did not end well: `exit_code`, `signal`, `time_limit`, …
    pub reason: Option<&'static str>,
    /// The exit code of its program; 128+n for a signal.
    pub exit_code: Option<i32>,
    /// Its end in one line.
    pub detail: Option<String>,
    /// What kept its program from starting: `no_room`, `code_layout` or `stage_not_shared`. Absent
    /// if it is not known, or the program started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<&'static str>,
}

impl From<&AttemptRecord> for Attempt {
    fn from(record: &AttemptRecord) -> Self {
        let ending = record.ending.as_ref();
        Self {
            attempt: record.attempt,
            started: record.started.map(Time),
            ended: record.ended.map(Time),
            reason: ending.and_then(|ending| ending.cause).map(Cause::word),
            exit_code: ending.and_then(|ending| ending.exit_code),
            detail: ending.map(ToString::to_string),
            obstacle: ending.and_then(Ending::known_obstacle).map(Obstacle::word),
        }
    }
}
