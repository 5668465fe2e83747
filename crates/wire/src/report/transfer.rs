//! The answer of `tow up`, `down`, `cp` and `sync`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was copied, or would be.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Transfers {
    /// One for each path, in the order of the command line.
    pub transfers: Vec<Transfer>,
}

/// One copy of a file or of a folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Transfer {
    /// The path, as it is shown.
    pub path: String,
    /// Which way it goes.
    pub direction: Direction,
    /// The number of files that were copied.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Those of the bytes that were there from a copy that was cut off.
    pub resumed_bytes: u64,
    /// Files that did not pass through this machine.
    pub copied_inside: u64,
    /// Files that had no hash to compare with.
    pub by_length_only: u64,
    /// Files that were there already, by size and time.
    pub equal_by_time: u64,
    /// Files that were there already, by their content.
    pub equal_by_hash: u64,
    /// Files that `--delete` removed.
    pub removed: usize,
    /// Whether nothing was done, because of `--dry-run`.
    pub dry_run: bool,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// With `--dry-run`, the files that would be copied.
    pub would_send: Vec<NamedSize>,
    /// With `--delete`, the files that only the receiving side has.
    pub only_there: Vec<NamedSize>,
    /// What cannot be copied.
    pub left_out: Vec<LeftOutEntry>,
    /// The files that could not be copied.
    pub failed: Vec<FailedFile>,
}

/// Which way a copy goes, seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From here to a datastore.
    Up,
    /// From a datastore to here.
    Down,
    /// From one datastore to another, or within one.
    Across,
}

/// A file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NamedSize {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub size: u64,
}

/// Something that is neither a file nor a folder, or has an impossible name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LeftOutEntry {
    /// Its name.
    pub name: String,
    /// Why it cannot be copied.
    pub why: String,
}

/// A file that could not be copied.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FailedFile {
    /// Its name.
    pub name: String,
    /// Why it could not be copied.
    pub why: String,
    /// What to do about it.
    pub hints: Vec<String>,
}
