//! The protocol with the machine that has a workspace, and files about workspaces here: the
//! automatic backups, and how the last one went.

use crate::daemon::Refusal;
use crate::line::Hello;
use serde::{Deserialize, Serialize};
use towline_core::quantity::Span;
use towline_core::resolve::NamedStore;
use towline_core::time::Moment;
use towline_core::workspace::{Keep, Workspace};

/// `tow __scratch`, on the machine that has the workspace.
pub const SCRATCH_VERB: &str = "__scratch";
/// `tow __backup STATE NAME`: one automatic backup, started from here.
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

/// The one request on a connection; `secrets` bytes of secrets follow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScratchOrder {
    pub name: String,
    /// The path as the user wrote it.
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
    /// A path on that machine.
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
    /// Backs up; then removes backups that the policy does not keep, if there is one.
    BackUp {
        keep: Option<Keep>,
        /// Makes it the newest backup even if the newest belongs to another copy.
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
    /// Bytes done and expected.
    Progress {
        files: (u64, u64),
        bytes: (u64, u64),
    },
    /// A line that a command of the user printed.
    Said(String),
    Done(Box<Outcome>),
    Refused(Refusal),
}

/// One backup, as it is shown.
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
    /// Files that could not be read, or that changed while they were read.
    pub doubtful: u64,
    /// Whether it can be read at all.
    pub readable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Created {
        path: String,
        /// Whether the folder contains files after its set-up.
        has_files: bool,
    },
    BackedUp(BackedUp),
    Restored {
        path: String,
        backup: BackupRow,
        /// The newest backup, if that is another.
        #[serde(default)]
        newest: Option<BackupRow>,
    },
    /// The folder is not empty; nothing was changed.
    NotEmpty {
        path: String,
        /// A backup that the workspace there was not restored from or backed up to.
        newer: Option<BackupRow>,
    },
    Listed(Vec<BackupRow>),
    /// Another process is backing it up or restoring it now.
    Busy,
    Checked(Checked),
    Pruned(Pruned),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackedUp {
    pub backup: BackupRow,
    /// The last backup already has everything.
    pub unchanged: bool,
    /// Files that had to be read.
    pub read: u64,
    /// Paths that were left out on purpose.
    pub left_out: Vec<String>,
    pub unreadable: Vec<String>,
    pub unsteady: Vec<String>,
    pub place: String,
    /// Workspace and backups are on the same disk.
    pub same_disk: bool,
    pub pruned: Option<Pruned>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    pub backups: usize,
    pub packs: usize,
    pub bytes: u64,
    pub damage: Vec<Damage>,
    /// How many damaged entries were dropped, so that the next backup stores them again.
    pub dropped: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Damage {
    pub what: String,
    pub how: String,
    /// Affected backups, and their files.
    pub touches: Vec<(String, Vec<String>)>,
    /// It was found before and stored again: the newest backup does not need it.
    #[serde(default)]
    pub is_set_aside: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pruned {
    pub kept: usize,
    pub dropped: Vec<BackupRow>,
    pub packs: usize,
    pub bytes: u64,
    /// Packs that a later prune deletes, if no backup needs them by then.
    pub marked: usize,
    pub done: bool,
}

/// The settings of a workspace's automatic backups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Auto {
    pub every: Span,
    pub since: Moment,
    pub workspace: Workspace,
    pub order: ScratchOrder,
}

/// How the last backup went, automatic or not.
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
    /// Since when backups fail, and why the last one did.
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
