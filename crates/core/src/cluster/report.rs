//! What a cluster says of runs.

use super::records::{Claim, End, Held, Started};
use crate::RunId;
use crate::state::{Native, RunState};
use crate::time::Moment;
use serde::{Deserialize, Serialize};

/// A run on a cluster: which submission it is of, and which task of its array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRef {
    pub run: RunId,
    pub submission: RunId,
    #[serde(default)]
    pub task: Option<u32>,
    /// What the cluster calls it, where that is not by its id: a run that was adopted.
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

    /// With what the cluster calls it, as far as that is known.
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
    /// Why the scheduler could not be asked: what is told comes from the records alone.
    pub unasked: Option<String>,
    /// Something will have lasted long enough to be believed, in so many milliseconds, if it is
    /// still so when the scheduler is asked then.
    #[serde(default)]
    pub settles_in: Option<u64>,
}

/// What is known of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    pub run: RunId,
    /// There is neither a folder nor a job of it.
    pub is_unknown: bool,
    /// It was there, and for long enough the cluster says that it never heard of it.
    #[serde(default)]
    pub is_lost: bool,
    pub cancelled: bool,
    pub attempts: Vec<AttemptReport>,
    pub native: Option<Native>,
    /// The run's state itself, where the cluster keeps it in our own words, as this machine does.
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
    /// As it is, it never starts.
    pub forever: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Below what was asked for; empty for the thing itself.
    pub path: String,
    pub size: u64,
    pub mode: u32,
    pub is_folder: bool,
    #[serde(default)]
    pub link: Option<String>,
}

/// Something that the scheduler or the stage folder knows of, whoever submitted it from wherever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownJob {
    /// Where it is a run of `tow`, and this user's.
    pub run: Option<RunId>,
    pub job: Option<String>,
    pub name: String,
    pub user: String,
    /// Our word for its state, where the scheduler's has a meaning.
    #[serde(default)]
    pub state: Option<String>,
    /// The scheduler's word for its state; none where it has let it go.
    pub word: Option<String>,
    pub reason: Option<String>,
    pub nodes: u32,
    pub ended: bool,
    /// When it was submitted, where that is told.
    #[serde(default)]
    pub created: Option<Moment>,
}
