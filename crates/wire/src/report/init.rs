//! The answers of `tow init`.

use schemars::JsonSchema;
use serde::Serialize;

/// The snapshot that `tow init` took.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Initialised {
    /// The id of the snapshot.
    pub id: String,
    /// The folder that it was taken of.
    pub root: String,
    /// The number of its files.
    pub files: usize,
    /// The bytes of its files.
    pub bytes: u64,
    /// The number of files that had to be read.
    pub read: usize,
    /// The bytes that went to the store.
    pub stored: u64,
    /// Whether the store had the snapshot before.
    pub was_there: bool,
    /// The number of files and folders that were left out.
    pub left_out: usize,
}

/// What a snapshot would hold, and what it would leave out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Explained {
    /// The folder that it would be taken of.
    pub root: String,
    /// The number of its files.
    pub files: usize,
    /// The bytes of its files.
    pub bytes: u64,
    /// The largest folders directly below the root, at most five.
    pub largest: Vec<FolderSize>,
    /// The files and folders that would be left out.
    pub left_out: Vec<LeftOut>,
}

/// A folder, and what it holds.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FolderSize {
    /// Its name; `.` for the files of the root itself.
    pub name: String,
    /// The number of its files.
    pub files: usize,
    /// The bytes of its files.
    pub bytes: u64,
}

/// A file or folder that a snapshot leaves out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Its path below the root; a folder's ends in `/`.
    pub path: String,
    /// The rule that leaves it out.
    pub why: String,
    /// Whether a run on this machine gets a link to it.
    pub linked: bool,
}
