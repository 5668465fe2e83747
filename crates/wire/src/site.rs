//! The protocol between `tow` here and `tow __site` on a far scheduler's host, over stdin and
//! stdout of one command: requests and replies in frames, one at a time. Content follows its frame
//! as raw bytes.

use crate::stage::Sent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use towline_core::RunId;
use towline_core::cluster::{
    Explanation, Facts, FileEntry, KnownJob, LogLength, LogSource, Observed, RunRef,
};
use towline_core::resolve::Runtime;

/// `tow __site STAGE [FOLDER]`, on a host that has the scheduler's commands: on the PATH, or in
/// that folder.
pub const SITE_VERB: &str = "__site";

/// Raised when an old program could misread a new message. Both sides are the same program, so the
/// numbers differ only by mistake.
pub const SITE_PROTOCOL: u32 = 1;

/// The first frame, sent without a request.
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

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteRequest {
    Probe,
    /// Which of these blobs of snapshots are missing there?
    Missing {
        blobs: Vec<String>,
    },
    /// `size` bytes follow.
    Keep {
        blob: String,
        size: u64,
    },
    Submit(Box<Sent>),
    /// Reads the records; with `ask`, queries the scheduler too.
    Observe {
        runs: Vec<RunRef>,
        ask: bool,
    },
    Cancel {
        runs: Vec<RunRef>,
    },
    /// Changes jobs that wait.
    Change {
        runs: Vec<RunRef>,
        change: JobChange,
    },
    /// Why the run waits, or how the scheduler describes it.
    Explain {
        run: RunRef,
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
    /// The entries at a path of a run's folder.
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
        runs: Vec<RunRef>,
    },
    /// All users' jobs that the scheduler knows, and this user's runs in the stage folder.
    Known,
    /// The plan of a submission.
    Plan {
        submission: RunId,
    },
}

/// A change of a job, in the scheduler's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobChange {
    Hold,
    Release,
    Update {
        /// The new time limit in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        qos: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partition: Option<String>,
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
    /// The runs that the scheduler refuses to change, and why.
    Changed {
        refused: Vec<(RunId, crate::daemon::Refusal)>,
    },
    Observed(Observed),
    Explained(Explanation),
    Logs(Vec<LogLength>),
    /// `size` bytes follow. `length` is that of the whole file, absent if there is none.
    Bytes {
        size: u64,
        length: Option<u64>,
    },
    Listed(Vec<FileEntry>),
    Known(Vec<KnownJob>),
    Plan(Option<Box<towline_core::plan::Plan>>),
    Refused(crate::daemon::Refusal),
}

/// What is known of a site, beside its nodes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SiteFacts {
    /// `tow nodes --json` has these beside the others.
    #[serde(default)]
    #[schemars(skip)]
    pub facts: Facts,
    /// `22.05.8`
    pub version: String,
    /// Whether Slurm has a database of accounts.
    pub accounting: bool,
    /// The folder that the login host and the nodes share.
    pub stage: String,
    /// The partitions.
    pub partitions: Vec<PartitionFacts>,
    /// The QOS that the user may use.
    pub tiers: Vec<String>,
    /// The accounting database, which has the QOS, does not answer now.
    #[serde(default)]
    pub tiers_unknown: bool,
    /// Seconds between the scheduler's SIGTERM and its SIGKILL.
    pub kill_wait: u64,
    /// The scheduler's signals reach every process of a job, not only the first.
    #[serde(default)]
    pub signals_reach_all: bool,
    /// Container runtimes there, the preferred one first.
    #[serde(default)]
    pub runtimes: Vec<Runtime>,
    /// The largest number of tasks of a job array.
    pub largest_array: u32,
    /// The user's usage and fair share, as the scheduler reports them.
    #[serde(default)]
    pub fair_share: Option<String>,
    /// Maintenance reservations: name, start, end, nodes.
    #[serde(default)]
    pub maintenance: Vec<String>,
    /// Variables that the scheduler's commands need beyond those of a plain shell, as `NAME=value`.
    #[serde(default)]
    pub environment: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartitionFacts {
    /// Its name.
    pub name: String,
    /// Whether jobs that name no partition go there.
    pub is_default: bool,
    /// Whether it takes jobs.
    pub is_up: bool,
    /// The longest time of a job, in seconds; null if there is no limit.
    pub longest: Option<u64>,
    /// The time of a job that asks for none, in seconds.
    pub usual: Option<u64>,
    /// The number of its nodes.
    pub nodes: u32,
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
