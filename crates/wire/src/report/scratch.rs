//! The answers of `tow scratch`.

use super::time::Time;
use crate::workspace;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::quantity::Span;
use towline_core::workspace::Keep;

/// A workspace that was made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkspaceCreated {
    /// Its name.
    pub workspace: String,
    /// Its folder.
    pub path: String,
    /// The machine that has it; null for this one.
    pub on: Option<String>,
    /// Its first backup. Absent if the folder was empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupMade>,
    /// How often it is backed up automatically. Absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
}

/// A backup that was made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BackupMade {
    /// The backup.
    pub backup: Backup,
    /// Nothing had changed, so that it is the last one.
    pub unchanged: bool,
    /// The number of files that had to be read.
    pub read: u64,
    /// What was left out on purpose.
    pub left_out: Vec<String>,
    /// What could not be read, and is not in it.
    pub unreadable: Vec<String>,
    /// The files that kept changing while they were read.
    pub unsteady: Vec<String>,
    /// Where the backups are.
    pub place: String,
    /// Whether the workspace and its backups are on one disk.
    pub same_disk: bool,
}

impl From<&workspace::BackedUp> for BackupMade {
    fn from(made: &workspace::BackedUp) -> Self {
        Self {
            backup: Backup::from(&made.backup),
            unchanged: made.unchanged,
            read: made.read,
            left_out: made.left_out.clone(),
            unreadable: made.unreadable.clone(),
            unsteady: made.unsteady.clone(),
            place: made.place.clone(),
            same_disk: made.same_disk,
        }
    }
}

/// A backup of a workspace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Backup {
    /// Its id.
    pub id: String,
    /// When it was taken.
    pub taken: Time,
    /// The machine that it was taken on.
    pub host: String,
    /// The folder that it was taken of.
    pub folder: String,
    /// The number of its files.
    pub files: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// The bytes that were new.
    pub stored: u64,
    /// The number of files that could not be read, or kept changing.
    pub doubtful: u64,
    /// Whether it can be read.
    pub readable: bool,
}

impl From<&workspace::BackupRow> for Backup {
    fn from(row: &workspace::BackupRow) -> Self {
        Self {
            id: row.id.clone(),
            taken: Time(row.taken),
            host: row.host.clone(),
            folder: row.folder.clone(),
            files: row.files,
            bytes: row.bytes,
            stored: row.stored,
            doubtful: row.doubtful,
            readable: row.readable,
        }
    }
}

/// The workspaces, and how their backups go.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Workspaces {
    /// The workspaces, by name.
    pub workspaces: Vec<WorkspaceRow>,
}

/// A workspace, and how its backups go.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkspaceRow {
    /// Its name.
    pub name: String,
    /// The machine that has it; null for this one.
    pub on: Option<String>,
    /// Its folder.
    pub path: String,
    /// Where its backups go; null for the home folder of that machine.
    pub to: Option<String>,
    /// How often it is backed up automatically; null if it is not.
    pub auto: Option<Span>,
    /// `good`, `failing` or `no backup`.
    pub state: &'static str,
    /// How the last backup went.
    pub status: BackupStatus,
}

/// The backups of a workspace, newest first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Backups {
    /// The workspace.
    pub workspace: String,
    /// The backups.
    pub backups: Vec<Backup>,
    /// How the last backup went.
    pub status: BackupStatus,
}

/// How the last backup went.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BackupStatus {
    /// When it began.
    pub began: Option<Time>,
    /// When one last succeeded.
    pub good: Option<Time>,
    /// When something was last stored.
    pub stored: Option<Time>,
    /// The last backup that succeeded.
    pub backup: Option<Backup>,
    /// How they fail; null if the last one succeeded.
    pub failing: Option<BackupFailing>,
}

/// Backups that fail.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BackupFailing {
    /// When the first of them failed.
    pub since: Time,
    /// When the last of them failed.
    pub last: Time,
    /// How many failed.
    pub times: u32,
    /// Why the last one failed.
    pub why: String,
    /// What to do about it.
    pub hints: Vec<String>,
}

impl From<&workspace::BackupStatus> for BackupStatus {
    fn from(status: &workspace::BackupStatus) -> Self {
        let failing = status.failing.as_ref().map(|failing| BackupFailing {
            since: Time(failing.since),
            last: Time(failing.last),
            times: failing.times,
            why: failing.why.clone(),
            hints: failing.hints.clone(),
        });
        Self {
            began: status.began.map(Time),
            good: status.good.map(Time),
            stored: status.stored.map(Time),
            backup: status.backup.as_ref().map(Backup::from),
            failing,
        }
    }
}

/// A workspace that was brought back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkspaceRestored {
    /// Its name.
    pub workspace: String,
    /// The folder that has it now.
    pub path: String,
    /// The machine that has it; null for this one.
    pub on: Option<String>,
    /// The backup that was brought back; null if the workspace was still there.
    pub backup: Option<Backup>,
}

/// Whether a workspace is backed up automatically.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AutoBackup {
    /// The workspace.
    pub workspace: String,
    /// Whether it is backed up automatically from now on.
    pub auto: bool,
    /// How often. Absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// Which backups are kept. Absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Whether it was on before. Absent without `--off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was_on: Option<bool>,
}

/// What `tow scratch check` read again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BackupsChecked {
    /// Whether nothing is damaged but what was set aside before.
    pub ok: bool,
    /// The number of backups.
    pub backups: usize,
    /// The number of packs.
    pub packs: usize,
    /// The bytes that were read.
    pub bytes: u64,
    /// What is damaged.
    pub damage: Vec<BackupDamage>,
    /// How much was dropped, so that the next backup stores it again.
    pub dropped: usize,
}

/// Something that is damaged.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BackupDamage {
    /// What is damaged.
    pub what: String,
    /// In which way.
    pub how: String,
    /// The backups that need it.
    pub touches: Vec<TouchedBackup>,
    /// It was found before and stored again: the newest backup does not need it.
    pub set_aside: bool,
}

/// A backup that needs something damaged.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TouchedBackup {
    /// Its id.
    pub backup: String,
    /// The files that are touched. An empty list means all of them.
    pub files: Vec<String>,
}

impl From<&workspace::Checked> for BackupsChecked {
    fn from(checked: &workspace::Checked) -> Self {
        let touched = |(backup, files): &(String, Vec<String>)| TouchedBackup {
            backup: backup.clone(),
            files: files.clone(),
        };
        let damage = checked.damage.iter().map(|damage| BackupDamage {
            what: damage.what.clone(),
            how: damage.how.clone(),
            touches: damage.touches.iter().map(touched).collect(),
            set_aside: damage.is_set_aside,
        });
        Self {
            ok: checked.damage.iter().all(|damage| damage.is_set_aside),
            backups: checked.backups,
            packs: checked.packs,
            bytes: checked.bytes,
            damage: damage.collect(),
            dropped: checked.dropped,
        }
    }
}

/// What `tow scratch prune` drops, or would drop.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BackupsPruned {
    /// The number of backups that stay.
    pub kept: usize,
    /// The backups that go.
    pub dropped: Vec<Backup>,
    /// The number of packs that go.
    pub packs: usize,
    /// The number of packs that a prune a day from now deletes, if nothing needs them by then.
    pub marked: usize,
    /// The bytes that this frees.
    pub bytes: u64,
    /// Whether it was carried out.
    pub done: bool,
    /// Which backups are kept.
    pub keep: Keep,
}

impl BackupsPruned {
    /// What was dropped, and what the rule was.
    pub fn new(pruned: &workspace::Pruned, keep: Keep) -> Self {
        Self {
            kept: pruned.kept,
            dropped: pruned.dropped.iter().map(Backup::from).collect(),
            packs: pruned.packs,
            marked: pruned.marked,
            bytes: pruned.bytes,
            done: pruned.done,
            keep,
        }
    }
}
