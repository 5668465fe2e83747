//! A run whose nodes share no file system and cannot use a scheduler's commands: the service starts
//! `tow __crew` once on every node. Node 0 leads; the others connect to it over the network. The
//! service brings their orders as files. It uploads the folders that they write to as objects of a
//! datastore: the stage.
//!
//! | object, below the stage | is |
//! |---|---|
//! | `bin/tow-DIGEST` | the program |
//! | `snapshots/…` | code, as everywhere |
//! | `submissions/ID.json` | a [`CrewOrder`] |
//! | `news/RUN.json` | a [`StatusDocument`], rewritten by the leader at every change |
//! | `runs/RUN/news.draft` | the same, written just before: if the leader is killed, one of the two is complete |
//! | `runs/RUN/news.json` | the last status document |
//! | `runs/RUN/cancel` | the run is cancelled; read when a signal comes |
//! | `runs/RUN/logs/attempt-1.rank-0/000000` | a part of a log; each but the last has [`LOG_PART_BYTES`] bytes |
//! | `runs/RUN/outputs/…` | the files that node 0 left in `outputs`, below its start folder |

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use towline_core::RunId;
use towline_core::cluster::AttemptReport;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::secret_name::SecretName;
use towline_core::time::Moment;

/// `tow __crew --order FILE --run RUN --folder FOLDER --news FOLDER [--store FOLDER] [--at
/// NAME=PATH]…`, on every node.
pub const CREW_VERB: &str = "__crew";

/// The size of a log part, except for the last.
pub const LOG_PART_BYTES: u64 = 1 << 20;

pub const CREW_VERSION: u32 = 1;

/// A submission, as its nodes get it. It does not contain the user's secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrewOrder {
    pub version: u32,
    pub plan: Plan,
    pub grace_millis: u64,
    /// Seconds between two uploads of a run's output.
    pub collect_every: u64,
    /// The token by which its nodes recognise each other.
    #[serde(rename = "word")]
    pub shared_token: SharedToken,
    /// The place of its secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<SecretPlace>,
}

/// The random token that a node shows to the leader, made for one submission. It is written only
/// where the job can read it, and never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SharedToken(String);

impl SharedToken {
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }
}

impl std::fmt::Debug for SharedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("‹shared token›")
    }
}

/// A vault that the job's identity may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretPlace {
    /// `https://NAME.vault.azure.net`
    pub vault: String,
    /// The vault's name of each secret, by our name: a variable, or a reference of a datastore.
    pub names: BTreeMap<SecretName, String>,
    /// The identity to use, if the node has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// The state of a run, written by its leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusDocument {
    pub version: u32,
    pub run: RunId,
    pub written: Moment,
    pub attempts: Vec<AttemptReport>,
}

/// A message of a node to the leader, in frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromNode {
    /// The first message: who the node is, and the token that proves it.
    Here {
        #[serde(rename = "word")]
        shared_token: SharedToken,
        node: u32,
        host: String,
    },
    /// Its set-up or its ranks have begun.
    Started { attempt: u32 },
    /// No process of that attempt is alive there, and its logs are uploaded.
    Ended { attempt: u32, ending: Ending },
    /// A heartbeat.
    Alive,
}

/// A message of the leader to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToNode {
    /// Start this attempt.
    Begin {
        attempt: u32,
        hosts: Vec<String>,
        port: u16,
    },
    /// End it, with the grace of the order.
    Stop {
        attempt: u32,
    },
    /// The job is over: exit with this code.
    Leave {
        code: i32,
    },
    Alive,
}

/// Names of objects below the stage.
pub mod keys {
    use towline_core::RunId;

    /// The folder of a run whose files are uploaded.
    pub const OUTPUTS: &str = "outputs";

    pub fn program(digest: &str) -> String {
        format!("bin/tow-{digest}")
    }
    pub fn snapshot(blob: &str) -> String {
        format!("snapshots/{blob}")
    }
    pub fn order(submission: &RunId) -> String {
        format!("submissions/{submission}.json")
    }
    pub fn status(run: &RunId) -> String {
        format!("news/{run}.json")
    }
    pub fn run(run: &RunId) -> String {
        format!("runs/{run}")
    }
    pub fn last_status(run: &RunId) -> String {
        format!("runs/{run}/news.json")
    }
    pub fn cancel(run: &RunId) -> String {
        format!("runs/{run}/cancel")
    }
    pub fn logs(run: &RunId) -> String {
        format!("runs/{run}/logs/")
    }
    /// The name of a part in the folder of its log, [`crate::log_name::LogName::folder`].
    pub fn part(index: u64) -> String {
        format!("{index:06}")
    }
}
