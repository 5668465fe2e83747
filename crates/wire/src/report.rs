//! The values that `--json` prints for runs and errors. Fields are only ever added.

use serde::Serialize;
use std::collections::BTreeMap;
use towline_core::reason::Ending;
use towline_core::record::{AttemptRecord, Freshness, RunRecord};

/// A run, as every verb shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    pub id: String,
    pub name: String,
    pub experiment: Option<String>,
    pub cluster: String,
    /// Lower case: drafted, staging, submitting, queued, running, succeeded, failed, cancelled,
    /// lost.
    pub state: &'static str,
    /// Why it ended, if it did not succeed: `exit_code`, `signal`, `time_limit`, …
    pub reason: Option<&'static str>,
    pub detail: Option<String>,
    pub exit_code: Option<i32>,
    pub attempt: u32,
    pub tier: String,
    pub tags: Vec<String>,
    pub sweep: Option<String>,
    pub parameters: BTreeMap<String, String>,
    pub command: String,
    pub gpus: u32,
    pub nodes: u32,
    pub ranks: u32,
    pub cancel_requested: bool,
    /// Why its cluster refused to cancel it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_refused: Option<String>,
    /// Its nodes are held for `tow ssh` until then.
    pub held_until: Option<String>,
    pub created: String,
    pub started: Option<String>,
    pub ended: Option<String>,
    pub resubmits: Option<String>,
    /// Its page in the cluster's portal, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `null` when fresh.
    pub stale_since: Option<String>,
    /// Why its state is not known now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
}

impl From<&RunRecord> for Run {
    fn from(record: &RunRecord) -> Self {
        let state = &record.state;
        let ending: Option<&Ending> = state
            .ending
            .as_ref()
            .filter(|_| state.phase.is_ended() || state.held_until.is_some());
        Self {
            id: record.id.to_string(),
            name: record.name.clone(),
            experiment: record.experiment.clone(),
            cluster: record.cluster.clone(),
            state: state.phase.word(),
            reason: ending
                .and_then(|ending| ending.cause)
                .map(towline_core::reason::Cause::word),
            detail: ending
                .filter(|ending| ending.cause.is_some())
                .map(ToString::to_string),
            exit_code: ending.and_then(|ending| ending.exit_code),
            attempt: state.attempt,
            tier: record.tier.clone(),
            tags: record.tags.clone(),
            sweep: record.sweep.as_ref().map(ToString::to_string),
            parameters: record.parameters.iter().cloned().collect(),
            command: record.command.clone(),
            gpus: record.gpus,
            nodes: record.nodes,
            ranks: record.world,
            cancel_requested: state.cancel_requested,
            cancel_refused: state
                .cancel_refused
                .clone()
                .filter(|_| !state.phase.is_ended()),
            held_until: state.held_until.map(|moment| moment.to_string()),
            created: record.created.to_string(),
            started: record.started.map(|moment| moment.to_string()),
            ended: record.ended.map(|moment| moment.to_string()),
            resubmits: record.resubmits.as_ref().map(ToString::to_string),
            url: state.native.as_ref().and_then(|native| native.url.clone()),
            stale_since: match &record.freshness {
                Freshness::Fresh => None,
                Freshness::Stale { since, .. } => Some(since.to_string()),
            },
            stale: match &record.freshness {
                Freshness::Fresh => None,
                Freshness::Stale { why, .. } => Some(why.clone()),
            },
        }
    }
}

/// `{"runs": […]}`
#[derive(Debug, Clone, Serialize)]
pub struct Runs {
    pub runs: Vec<Run>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Attempt {
    pub attempt: u32,
    pub started: Option<String>,
    pub ended: Option<String>,
    pub reason: Option<&'static str>,
    pub exit_code: Option<i32>,
    pub detail: Option<String>,
}

impl From<&AttemptRecord> for Attempt {
    fn from(record: &AttemptRecord) -> Self {
        let ending = record.ending.as_ref();
        Self {
            attempt: record.attempt,
            started: record.started.map(|moment| moment.to_string()),
            ended: record.ended.map(|moment| moment.to_string()),
            reason: ending
                .and_then(|ending| ending.cause)
                .map(towline_core::reason::Cause::word),
            exit_code: ending.and_then(|ending| ending.exit_code),
            detail: ending.map(ToString::to_string),
        }
    }
}

/// An error on stderr, with `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    pub error: &'static str,
    pub message: String,
    pub hints: Vec<String>,
    pub exit_code: u8,
}
