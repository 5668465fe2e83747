//! Paths and file formats in the stage folder of a far cluster, a folder that all its hosts share.
//! Nothing is opened here.
//!
//! Each step of an attempt has a file of its own. The file is created once, and complete from the
//! start, so that hosts that cannot talk to each other agree on which came first:
//!
//! | file in a run's folder | says |
//! |---|---|
//! | `attempt-1.claim` | this attempt was begun, by this job on this host. Created before any process of it runs |
//! | `attempt-1.started` | its ranks were started |
//! | `attempt-1.held` | a rank failed, and the nodes are held |
//! | `attempt-1.end` | no process of it is alive, and this is how it ended |
//! | `attempt-1.head.lease`, `attempt-1.node-0.lease` | renewed again and again while a process of it may live there |
//! | `attempt-1.node-0.end` | how it ended on that node |
//! | `attempt-1.stop` | it must end, and why |
//! | `cancel` | the run is cancelled |
//! | `code-removed` | the run has ended, and the files of its code that equal its snapshot were removed |

use crate::daemon::PrivateSecrets;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_core::RunId;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::time::Moment;

/// The command that the scheduler starts: `tow __head STAGE SUBMISSION`.
pub const HEAD_VERB: &str = "__head";

/// `tow __enter STAGE RUN RANK [CMD…]`, on a node of a run: starts a shell or a command in the
/// environment of a rank.
pub const ENTER_VERB: &str = "__enter";

/// How often a lease is renewed.
pub const LEASE_EVERY: Duration = Duration::from_secs(3);
/// A process that cannot renew its lease for this long kills its ranks.
pub const LEASE_GIVEN_UP: Duration = Duration::from_secs(12);
/// A lease that was not renewed for this long is free. This is longer than its holder takes to give
/// up and kill its ranks.
pub const LEASE_LAPSED: Duration = Duration::from_secs(20);

/// `~/.towline` over there, mode 0700.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageFolder(PathBuf);

impl StageFolder {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }
    pub fn root(&self) -> &Path {
        &self.0
    }
    /// The program itself, by the hash of its bytes.
    pub fn program(&self, digest: &str) -> PathBuf {
        self.0.join("bin").join(format!("tow-{digest}"))
    }
    /// Variables of a login shell that the scheduler's commands need, stored once found.
    pub fn scheduler_environment(&self) -> PathBuf {
        self.0.join("slurm-environment")
    }
    pub fn snapshots(&self) -> PathBuf {
        self.0.join("snapshots")
    }
    pub fn transfers(&self) -> PathBuf {
        self.0.join("transfers")
    }
    pub fn submissions(&self) -> PathBuf {
        self.0.join("submissions")
    }
    pub fn submission(&self, id: &RunId) -> PathBuf {
        self.submissions().join(id.as_str())
    }
    /// The plan of a submission.
    pub fn plan(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("plan.json")
    }
    /// Mode 0600, removed when the last run of the submission has ended.
    pub fn secrets(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("secrets")
    }
    /// The script as it was sent to the scheduler.
    pub fn script(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("batch.sh")
    }
    /// The requests to the scheduler and its answers, one JSON value per line.
    pub fn jobs(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("jobs")
    }
    /// Held while a submission is sent to the scheduler.
    pub fn submission_lock(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("lock")
    }
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }
    pub fn run(&self, run: &RunId) -> RunFolder {
        RunFolder(self.runs().join(run.as_str()))
    }
}

/// The folder of one run: records, logs, code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder(PathBuf);

impl RunFolder {
    pub fn root(&self) -> &Path {
        &self.0
    }
    pub fn cancel(&self) -> PathBuf {
        self.0.join("cancel")
    }
    /// The folder that the run starts in.
    pub fn code(&self) -> PathBuf {
        self.0.join("code")
    }
    pub fn code_removed(&self) -> PathBuf {
        self.0.join("code-removed")
    }
    pub fn record(&self, attempt: u32, what: Record) -> PathBuf {
        self.0.join(format!("attempt-{attempt}.{}", what.word()))
    }
    pub fn lease(&self, attempt: u32, holder: Holder) -> PathBuf {
        self.0.join(match holder {
            Holder::Head => format!("attempt-{attempt}.head.lease"),
            Holder::Node(node) => format!("attempt-{attempt}.node-{node}.lease"),
        })
    }
    pub fn node_end(&self, attempt: u32, node: u32) -> PathBuf {
        self.0.join(format!("attempt-{attempt}.node-{node}.end"))
    }
}

/// The holder of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The process that the scheduler started.
    Head,
    Node(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Claim,
    Started,
    Held,
    End,
    Stop,
}

impl Record {
    const fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Started => "started",
            Self::Held => "held",
            Self::End => "end",
            Self::Stop => "stop",
        }
    }
}

/// The removed code of an ended run. The removed files equal those of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRemoved {
    pub snapshot: String,
    /// Files of the snapshot that the run itself had removed; names may be any bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Box<[u8]>>,
    /// The removal is complete.
    #[serde(default)]
    pub is_done: bool,
}

/// An order to end an attempt, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub ending: Ending,
    /// Without grace, because another copy waits for this one to end.
    #[serde(default)]
    pub at_once: bool,
    /// The scheduler ends the job and signals it by itself.
    #[serde(default)]
    pub by_scheduler: bool,
}

/// A submission, as the processes on the far cluster get it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub version: u32,
    pub plan: Plan,
    pub grace_millis: u64,
    /// Seconds between two uploads of a run's output.
    pub collect_every: u64,
    /// The scheduler's signals reach the ranks without us.
    #[serde(default)]
    pub signals_reach_all: bool,
}

pub const ORDER_VERSION: u32 = 1;

/// A request to the scheduler for a submission, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobRecord {
    /// The `number`-th request is about to be sent. From now on the scheduler may have the job.
    Intent {
        number: u32,
        at: Moment,
        /// Only these tasks of its array; empty means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<u32>,
    },
    /// The scheduler accepted it.
    Accepted { number: u32, job: String },
    /// The scheduler says that it does not have it.
    Refused { number: u32, why: String },
    /// The scheduler accepted it once and will not run these tasks any more.
    Gone {
        number: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<u32>,
    },
}

/// A submission with its secrets, as it is sent there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sent {
    pub order: Order,
    #[serde(default)]
    pub secrets: PrivateSecrets,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_where_logs_are_not() {
        let run = StageFolder::new("/s").run(&RunId::new("x", 1, 2));
        for path in [
            run.record(1, Record::Claim),
            run.record(12, Record::End),
            run.lease(1, Holder::Head),
            run.node_end(2, 7),
            run.cancel(),
            run.code_removed(),
        ] {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name");
            assert_eq!(
                crate::log_name::LogName::from_file(name),
                None,
                "{name} is no log"
            );
        }
    }
}
