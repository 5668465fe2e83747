//! The record of a run. Every list, page and report is made from it.

use crate::RunId;
use crate::state::RunState;
use crate::sweep::Parameters;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

/// One run as the history has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Place in the history; grows with every submission.
    pub sequence: i64,
    pub id: RunId,
    pub name: String,
    pub experiment: Option<String>,
    pub cluster: String,
    pub tier: String,
    pub tags: Vec<String>,
    /// The sweep it belongs to.
    pub sweep: Option<RunId>,
    pub parameters: Parameters,
    /// The program, in one line.
    pub command: String,
    pub gpus: u32,
    pub nodes: u32,
    pub world: u32,
    pub state: RunState,
    pub created: Moment,
    /// When the latest attempt started.
    pub started: Option<Moment>,
    pub ended: Option<Moment>,
    pub resubmits: Option<RunId>,
    pub freshness: Freshness,
}

/// How old the shown state is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    #[default]
    Fresh,
    Stale {
        since: Moment,
        why: String,
    },
}

/// One attempt as the history has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    pub attempt: u32,
    pub runner: Option<String>,
    pub started: Option<Moment>,
    pub ended: Option<Moment>,
    pub ending: Option<crate::reason::Ending>,
}
