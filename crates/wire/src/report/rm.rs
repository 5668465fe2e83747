//! The answer of `tow rm`.

use schemars::JsonSchema;
use serde::Serialize;

/// What `tow rm` removes from a datastore, or would remove.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Removed {
    /// The paths, as they were given.
    pub paths: Vec<String>,
    /// The number of files at these paths.
    pub files: usize,
    /// The number of names that only mark a folder.
    pub folders: usize,
    /// The bytes of the files.
    pub bytes: u64,
    /// Whether they were removed.
    pub done: bool,
    /// Every name that would go; a folder marker's ends in `/`. Absent without `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_remove: Option<Vec<String>>,
}
