//! The answer of `tow get`.

use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// The files that `tow get` brought.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Got {
    /// Where they are now.
    pub files: Vec<PathBuf>,
}

/// The answer of `tow get RUN` without a path: what can be copied.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Listed {
    /// The files and folders of the folder where the run started.
    pub entries: Vec<Entry>,
}

/// A file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Entry {
    /// Its name in that folder.
    pub path: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// The size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
