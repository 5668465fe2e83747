//! Between `tow` here and `tow __site` beside a far scheduler, over the stdin and stdout of one
//! command: requests and replies in frames, one at a time. Content follows its frame as it is.

use crate::stage::{Claim, End, Held, Sent, Started};
use serde::{Deserialize, Serialize};
use towline_core::RunId;
use towline_core::backend::{Facts, LogSource};
use towline_core::resolve::Runtime;
use towline_core::state::{Native, RunState};
use towline_core::time::Moment;

/// `tow __site STAGE [FOLDER]`, on the host where the scheduler's commands are: on the path, or in
/// that folder.
pub const SITE_VERB: &str = "__site";

/// Raised when an old one could misread a new message. Both sides are the same program, so it
/// differs only by mistake.
pub const SITE_PROTOCOL: u32 = 1;

/// The first frame, by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SiteHello {
    pub protocol: u32,
    pub version: String,
    pub host: String,
    pub user: String,
    /// Absolute.
    pub stage: String,
    /// Bytes that can still be written there.
    pub free: u64,
    /// BLAKE3 of the program that answers.
    pub program: String,
}

/// A run over there: which submission it is of, and which task of its array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FarRun {
    pub run: RunId,
    pub submission: RunId,
    #[serde(default)]
    pub task: Option<u32>,
    /// What the cluster calls it, where that is not by its id: a run that was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
}

impl FarRun {
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

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteRequest {
    Probe,
    /// Which of these blobs of snapshots are not there.
    Missing {
        blobs: Vec<String>,
    },
    /// `size` bytes follow.
    Keep {
        blob: String,
        size: u64,
    },
    Submit(Box<Sent>),
    /// With `ask`, the scheduler is asked too; else only the records are read.
    Observe {
        runs: Vec<FarRun>,
        ask: bool,
    },
    Cancel {
        runs: Vec<FarRun>,
    },
    /// Why it waits, or how the scheduler saw it.
    Explain {
        run: FarRun,
    },
    /// Every log of a run, with its length.
    Logs {
        run: RunId,
    },
    /// Bytes of a log; they follow the reply.
    Log {
        run: RunId,
        attempt: u32,
        source: LogSource,
        offset: u64,
        most: u64,
    },
    /// What lies at a path of a run's folder.
    List {
        run: RunId,
        path: String,
    },
    /// Bytes of a file of a run's folder; they follow the reply.
    Read {
        run: RunId,
        path: String,
        offset: u64,
        most: u64,
    },
    Forget {
        runs: Vec<FarRun>,
    },
    /// What the scheduler has, of everybody, and what the stage folder has of this user.
    Known,
    /// The plan of a submission.
    Plan {
        submission: RunId,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteReply {
    Facts(Box<SiteFacts>),
    Missing {
        blobs: Vec<String>,
    },
    Done,
    Submitted {
        job: String,
    },
    Observed(Observed),
    Explained(Explained),
    Logs(Vec<LogLength>),
    /// `size` bytes follow. `length` is that of the whole, absent where there is none.
    Bytes {
        size: u64,
        length: Option<u64>,
    },
    Listed(Vec<Listed>),
    Known(Vec<KnownJob>),
    Plan(Option<Box<towline_core::plan::Plan>>),
    Refused(crate::daemon::Refusal),
}

/// What is known of a site, beside its nodes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SiteFacts {
    pub facts: Facts,
    /// `22.05.8`
    pub version: String,
    pub accounting: bool,
    pub stage: String,
    pub partitions: Vec<PartitionFacts>,
    pub tiers: Vec<String>,
    /// The database that has the QOS does not answer now.
    #[serde(default)]
    pub tiers_unknown: bool,
    /// Seconds between the scheduler's SIGTERM and its SIGKILL.
    pub kill_wait: u64,
    /// Its signals reach every process of a job, and not the first alone.
    #[serde(default)]
    pub signals_reach_all: bool,
    /// What runs images there, the one to take first.
    #[serde(default)]
    pub runtimes: Vec<Runtime>,
    pub largest_array: u32,
    /// Share of use and fair share, as the scheduler tells.
    #[serde(default)]
    pub fair_share: Option<String>,
    /// Windows in which nodes are kept free: name, from, until, nodes.
    #[serde(default)]
    pub maintenance: Vec<String>,
    /// Variables that the scheduler's commands need there beyond those of a plain shell, as
    /// `NAME=value`.
    #[serde(default)]
    pub environment: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartitionFacts {
    pub name: String,
    pub is_default: bool,
    pub is_up: bool,
    /// Seconds.
    pub longest: Option<u64>,
    /// Seconds that a job has which asks for none.
    pub usual: Option<u64>,
    pub nodes: u32,
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
pub struct Explained {
    pub native: Option<Native>,
    pub text: String,
    pub next: Option<String>,
    /// As it is, it never starts.
    pub forever: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLength {
    pub attempt: u32,
    pub source: LogSource,
    pub length: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
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

impl crate::line::Hello for SiteHello {
    const HAS_HEARTBEAT: bool = true;
    fn program(&self) -> &str {
        &self.program
    }
    fn is_understood(&self) -> bool {
        self.protocol == SITE_PROTOCOL
    }
}
