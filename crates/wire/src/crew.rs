//! A run whose nodes share no file system and have no scheduler's commands beside them: the service
//! starts `tow __crew` once on every node. Node 0 leads; the others call it over the network. What
//! they are to do lies in files that the service brings, what they tell goes into folders that it
//! carries away, as objects of a datastore: the stage.
//!
//! | object, below the stage | is |
//! |---|---|
//! | `bin/tow-DIGEST` | the program |
//! | `snapshots/…` | code, as everywhere |
//! | `submissions/ID.json` | a [`CrewOrder`] |
//! | `news/RUN.json` | a [`StatusDocument`], written anew by the leader whenever something changes |
//! | `runs/RUN/news.draft` | the same, written just before: one of the two is whole, whenever the leader is killed |
//! | `runs/RUN/news.json` | the same, when it is the last |
//! | `runs/RUN/cancel` | the run is to end; looked for when a signal comes |
//! | `runs/RUN/logs/attempt-1.rank-0/000000` | a part of a log; each but the last has [`LOG_PART_BYTES`] bytes |
//! | `runs/RUN/outputs/…` | what node 0 left in `outputs`, below where it started |

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use towline_core::RunId;
use towline_core::cluster::AttemptReport;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::time::Moment;

/// `tow __crew --order FILE --run RUN --folder FOLDER --news FOLDER [--store FOLDER] [--at
/// NAME=PATH]…`, on every node.
pub const CREW_VERB: &str = "__crew";

/// Bytes of a log that lie in one object.
pub const LOG_PART_BYTES: u64 = 1 << 20;

pub const CREW_VERSION: u32 = 1;

/// What a submission is, for the nodes that carry it. The user's secrets are not in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrewOrder {
    pub version: u32,
    pub plan: Plan,
    pub grace_millis: u64,
    /// Seconds between collections of what a run writes.
    pub collect_every: u64,
    /// By this its nodes know each other.
    #[serde(rename = "word")]
    pub shared_token: SharedToken,
    /// Where its secrets are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<SecretPlace>,
}

/// What a node shows to the leader to be let in: random, made for one submission. It is written where
/// only the job can read it, and printed nowhere.
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
    /// The vault's name of each, by ours: a variable, or a reference of a datastore.
    pub names: BTreeMap<String, String>,
    /// Which identity, where the node has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// What is known of a run, by its leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusDocument {
    pub version: u32,
    pub run: RunId,
    pub written: Moment,
    pub attempts: Vec<AttemptReport>,
}

/// What a node says to the leader, in frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromNode {
    /// First: who it is, and that it belongs.
    Here {
        #[serde(rename = "word")]
        shared_token: SharedToken,
        node: u32,
        host: String,
    },
    /// Its set-up or its ranks have begun.
    Started { attempt: u32 },
    /// Nothing of that attempt is alive there, and what it printed was sent away.
    Ended { attempt: u32, ending: Ending },
    /// A sign of life.
    Alive,
}

/// What the leader says to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToNode {
    /// Carry this attempt.
    Begin {
        attempt: u32,
        hosts: Vec<String>,
        port: u16,
    },
    /// End it, with the grace of the order.
    Stop {
        attempt: u32,
    },
    /// All is over: leave with this code.
    Leave {
        code: i32,
    },
    Alive,
}

/// Names of objects below the stage.
pub mod keys {
    use towline_core::RunId;

    /// The folder of a run whose files are kept.
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
