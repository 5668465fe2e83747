//! The reports of a cluster about runs.

use super::records::{Claim, End, Held, Started};
use crate::RunId;
use crate::state::{Native, RunState};
use crate::time::Moment;
use serde::{Deserialize, Serialize};

/// A run on a cluster: its submission, and its task in an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRef {
    pub run: RunId,
    pub submission: RunId,
    #[serde(default)]
    pub task: Option<u32>,
    /// The cluster's own name for it, if that is not its id: a run that was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
}

impl RunRef {
    pub fn of(run: &RunId) -> Self {
        match run.sweep() {
            Some((submission, task)) => Self {
                run: run.clone(),
                submission,
                task: Some(task),
                native: None,
            },
            None => Self {
                run: run.clone(),
                submission: run.clone(),
                task: None,
                native: None,
            },
        }
    }

    /// With the cluster's own name for it, if it is known.
    pub fn known(run: &RunId, state: &RunState) -> Self {
        Self {
            native: state
                .native
                .as_ref()
                .map(|native| native.id.clone())
                .filter(|id| !id.is_empty()),
            ..Self::of(run)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub at: Moment,
    pub runs: Vec<RunReport>,
    /// Why the scheduler could not be queried. Then the reports come from the records alone.
    pub unasked: Option<String>,
    /// In so many milliseconds an observation will have lasted long enough to be believed, if the
    /// scheduler still reports it then.
    #[serde(default)]
    pub settles_in: Option<u64>,
}

/// The report of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    pub run: RunId,
    /// Whether it has neither a folder nor a job.
    pub is_unknown: bool,
    /// It existed, and for long enough the cluster reports that it has never had it.
    #[serde(default)]
    pub is_lost: bool,
    pub cancelled: bool,
    pub attempts: Vec<AttemptReport>,
    pub native: Option<Native>,
    /// The run's state itself, if the cluster stores it in our format, as this machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<RunState>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptReport {
    pub attempt: u32,
    pub claim: Option<Claim>,
    pub started: Option<Started>,
    pub held: Option<Held>,
    pub end: Option<End>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    pub native: Option<Native>,
    pub text: String,
    pub next: Option<String>,
    /// It will never start as it is.
    pub forever: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the requested path; empty for the entry itself.
    pub path: String,
    pub size: u64,
    pub mode: u32,
    pub is_folder: bool,
    #[serde(default)]
    pub link: Option<String>,
}

/// A job that the scheduler or the stage folder knows, submitted by any tool on any machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownJob {
    /// Its run id, if it is a run of `tow` and of this user.
    pub run: Option<RunId>,
    pub job: Option<String>,
    pub name: String,
    pub user: String,
    /// Our word for its state, if the scheduler's has a meaning.
    #[serde(default)]
    pub state: Option<String>,
    /// The scheduler's word for its state; none if it has forgotten the job.
    pub word: Option<String>,
    pub reason: Option<String>,
    pub nodes: u32,
    pub ended: bool,
    /// When it was submitted, if that is reported.
    #[serde(default)]
    pub created: Option<Moment>,
}
