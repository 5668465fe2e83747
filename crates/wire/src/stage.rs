//! Where things lie in the stage folder of a far cluster, a folder that all its hosts share. Only
//! names and what is in the files; nothing is opened here.
//!
//! What is said of an attempt lies in files of its own that are made whole and once, so that hosts
//! that know nothing of each other agree on who came first:
//!
//! | file in a run's folder | says |
//! |---|---|
//! | `attempt-1.claim` | this attempt was begun, by this job on this host. Made before anything of it runs |
//! | `attempt-1.started` | its ranks were started |
//! | `attempt-1.held` | a rank failed, and the nodes are kept |
//! | `attempt-1.end` | nothing of it is alive, and this is how it ended |
//! | `attempt-1.head.lease`, `attempt-1.node-0.lease` | touched again and again while anything of it lives there |
//! | `attempt-1.node-0.end` | how it ended on that node |
//! | `attempt-1.stop` | it is to end, and why |
//! | `cancel` | the run is to end |
//! | `code-removed` | the run has ended, and what its code has in common with its snapshot was removed |

use crate::daemon::PrivateSecrets;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_core::RunId;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::time::Moment;

/// What the scheduler starts: `tow __head STAGE SUBMISSION`.
pub const HEAD_VERB: &str = "__head";

/// `tow __enter STAGE RUN RANK [CMD…]`, on a node of a run: becomes a shell, or a command, where a
/// rank is.
pub const ENTER_VERB: &str = "__enter";

/// How often a lease is touched.
pub const LEASE_EVERY: Duration = Duration::from_secs(3);
/// Who could not touch its lease for this long ends what it holds.
pub const LEASE_GIVEN_UP: Duration = Duration::from_secs(12);
/// A lease that nobody touched for this long is nobody's: longer than it takes its holder to give
/// up and end all.
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
    /// Variables of a login shell that the scheduler's commands need: found once, and remembered.
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
    /// Mode 0600, gone when the last run of the submission has ended.
    pub fn secrets(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("secrets")
    }
    /// What was sent to the scheduler, as it was.
    pub fn script(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("batch.sh")
    }
    /// What was asked of the scheduler and what it answered, one JSON value a line.
    pub fn jobs(&self, id: &RunId) -> PathBuf {
        self.submission(id).join("jobs")
    }
    /// Held while the scheduler is asked to take a submission.
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
    /// The tree that the run starts in.
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

/// Whose lease.
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

/// The code of an ended run, as far as it is not in its folder any more: it is that of the
/// snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRemoved {
    pub snapshot: String,
    /// What the run itself had removed of it; any bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Box<[u8]>>,
    /// Nothing is left to be removed.
    #[serde(default)]
    pub is_done: bool,
}

/// Why an attempt is to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub ending: Ending,
    /// Without grace: another copy waits for this one to be gone.
    #[serde(default)]
    pub at_once: bool,
    /// The scheduler ends the job, and signals it by itself.
    #[serde(default)]
    pub by_scheduler: bool,
}

/// What a submission is, for those who carry it over there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub version: u32,
    pub plan: Plan,
    pub grace_millis: u64,
    /// Seconds between collections of what a run writes.
    pub collect_every: u64,
    /// The scheduler's signals reach the ranks without us.
    #[serde(default)]
    pub signals_reach_all: bool,
}

pub const ORDER_VERSION: u32 = 1;

/// What was asked of the scheduler for a submission, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobRecord {
    /// About to ask for the `number`-th time. From here on the scheduler may have it.
    Intent {
        number: u32,
        at: Moment,
        /// Only these tasks of its array; all, where none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<u32>,
    },
    /// It took it.
    Accepted { number: u32, job: String },
    /// It does not have it, by its own word.
    Refused { number: u32, why: String },
    /// It took it once and will not carry these tasks any more.
    Gone {
        number: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<u32>,
    },
}

/// A submission with its secrets, on its way over there.
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
