//! What is asked of the machine that has a workspace, its answers, and what is kept here of
//! workspaces: automatic backups that are wanted, and how the last one went.

use crate::daemon::Refusal;
use crate::line::Hello;
use serde::{Deserialize, Serialize};
use towline_core::quantity::Span;
use towline_core::resolve::NamedStore;
use towline_core::time::Moment;
use towline_core::workspace::{Keep, Workspace};

/// `tow __scratch`, on the machine that has the workspace.
pub const SCRATCH_VERB: &str = "__scratch";
/// `tow __backup STATE NAME`: one automatic backup, from here.
pub const BACKUP_VERB: &str = "__backup";

pub const PROTOCOL: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub struct ScratchHello {
    pub protocol: u32,
    pub program: String,
}

impl Hello for ScratchHello {
    fn program(&self) -> &str {
        &self.program
    }
    fn is_understood(&self) -> bool {
        self.protocol == PROTOCOL
    }
}

/// The one question on a line; the secrets follow it, `secrets` bytes of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScratchOrder {
    pub name: String,
    /// As the user wrote it.
    pub path: String,
    pub to: Destination,
    #[serde(default)]
    pub ignore: Vec<String>,
    pub act: Act,
    #[serde(default)]
    pub secrets: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// As that machine sees it.
    Folder(String),
    Store {
        store: Box<NamedStore>,
        path: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Makes the folder and its environment.
    Create {
        setup: Vec<String>,
    },
    /// And then drops what the policy does not keep, where one is given.
    BackUp {
        keep: Option<Keep>,
        /// It becomes the newest backup also where that is of something else.
        #[serde(default)]
        anyway: bool,
    },
    Restore {
        backup: Option<String>,
        only: Vec<String>,
        setup: Vec<String>,
    },
    List,
    Check {
        backup: Option<String>,
        repair: bool,
    },
    Prune {
        keep: Keep,
        dry_run: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScratchReply {
    /// Done and expected.
    Progress {
        files: (u64, u64),
        bytes: (u64, u64),
    },
    /// A line that a command of the user's wrote.
    Said(String),
    Done(Box<Outcome>),
    Refused(Refusal),
}

/// One backup, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRow {
    pub id: String,
    pub taken: Moment,
    pub host: String,
    pub folder: String,
    pub files: u64,
    pub bytes: u64,
    /// Bytes that were new.
    pub stored: u64,
    /// Files that could not be read, or kept changing.
    pub doubtful: u64,
    /// It can be read at all.
    pub readable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Created {
        path: String,
        /// There is something in the folder, once it was set up.
        has_files: bool,
    },
    BackedUp(BackedUp),
    Restored {
        path: String,
        backup: BackupRow,
        /// The newest, where that is another.
        #[serde(default)]
        newest: Option<BackupRow>,
    },
    /// Something is there already; nothing was changed.
    NotEmpty {
        path: String,
        /// A backup that what is there does not know of.
        newer: Option<BackupRow>,
    },
    Listed(Vec<BackupRow>),
    /// Somebody is backing it up or restoring it right now.
    Busy,
    Checked(Checked),
    Pruned(Pruned),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackedUp {
    pub backup: BackupRow,
    /// The last one has all of it already.
    pub unchanged: bool,
    /// Files that had to be read.
    pub read: u64,
    /// What was left out on purpose.
    pub left_out: Vec<String>,
    pub unreadable: Vec<String>,
    pub unsteady: Vec<String>,
    pub place: String,
    /// Workspace and backups are on one disk.
    pub same_disk: bool,
    pub pruned: Option<Pruned>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    pub backups: usize,
    pub packs: usize,
    pub bytes: u64,
    pub damage: Vec<Damage>,
    /// What was dropped, so that the next backup stores it anew.
    pub dropped: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Damage {
    pub what: String,
    pub how: String,
    /// Backups, and their files.
    pub touches: Vec<(String, Vec<String>)>,
    /// It was found before, and stored anew: the newest does not need it.
    #[serde(default)]
    pub is_set_aside: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pruned {
    pub kept: usize,
    pub dropped: Vec<BackupRow>,
    pub packs: usize,
    pub bytes: u64,
    /// Packs that go with a later prune, if nobody has come to need them.
    pub marked: usize,
    pub done: bool,
}

/// Automatic backups of a workspace, as they were asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Auto {
    pub every: Span,
    pub since: Moment,
    pub workspace: Workspace,
    pub order: ScratchOrder,
}

/// How the last backup went, whoever asked for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BackupStatus {
    /// When the last one began.
    pub began: Option<Moment>,
    /// When the last one succeeded, and which it is.
    pub good: Option<Moment>,
    #[serde(default)]
    pub backup: Option<BackupRow>,
    /// When something was last stored.
    #[serde(default)]
    pub stored: Option<Moment>,
    /// Since when they fail, and why the last one did.
    #[serde(default)]
    pub failing: Option<Failing>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    pub since: Moment,
    pub last: Moment,
    pub times: u32,
    pub why: String,
    #[serde(default)]
    pub hints: Vec<String>,
}
