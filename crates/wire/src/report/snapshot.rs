//! The answers of `tow snapshot`.

use schemars::JsonSchema;
use serde::Serialize;

/// The snapshots that are kept, newest first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Snapshots {
    /// The snapshots.
    pub snapshots: Vec<Snapshot>,
}

/// A snapshot.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Snapshot {
    /// Its id.
    pub id: String,
    /// The name of the folder that it was taken of. Empty if it is damaged.
    pub name: String,
    /// When it was taken, as text in UTC. Empty if it is damaged.
    pub taken: String,
    /// The number of its files.
    pub files: usize,
    /// The bytes of its files.
    pub bytes: u64,
    /// The number of runs in the history that have it.
    pub runs: usize,
    /// Why it cannot be used; null if it can.
    pub damage: Option<String>,
}

/// What `tow snapshot check` read again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SnapshotsChecked {
    /// Whether nothing is damaged.
    pub ok: bool,
    /// The number of snapshots.
    pub snapshots: usize,
    /// The number of packs.
    pub packs: usize,
    /// The bytes that were read.
    pub bytes: u64,
    /// What is damaged.
    pub damage: Vec<SnapshotDamage>,
}

/// Something that is damaged.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SnapshotDamage {
    /// What is damaged.
    pub what: String,
    /// In which way.
    pub how: String,
    /// The snapshots that need it.
    pub touches: Vec<TouchedSnapshot>,
}

/// A snapshot that needs something damaged.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TouchedSnapshot {
    /// Its id.
    pub snapshot: String,
    /// The files that are touched. An empty list means all of them.
    pub files: Vec<String>,
}

/// A snapshot that was laid out as a folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SnapshotFolder {
    /// The id of the snapshot.
    pub id: String,
    /// The folder.
    pub folder: String,
    /// The number of its files.
    pub files: usize,
    /// The bytes of its files.
    pub bytes: u64,
}

/// What `tow snapshot prune` drops, or would drop.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SnapshotsPruned {
    /// The ids of the snapshots.
    pub snapshots: Vec<String>,
    /// The digests of packs that go.
    pub packs: Vec<String>,
    /// The digests of packs that a prune a day from now deletes, if nobody needs them by then.
    pub doomed: Vec<String>,
    /// The number of snapshots that stay.
    pub kept: usize,
    /// The bytes that this frees.
    pub bytes: u64,
    /// Whether it was carried out.
    pub done: bool,
}
