//! The answers of `tow trust`.

use schemars::JsonSchema;
use serde::Serialize;

/// What a folder's configuration would do beyond describing jobs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Trust {
    /// Whether all of it counts now.
    pub trusted: bool,
    /// The files that asked for more.
    pub files: Vec<PrivilegedFile>,
}

/// A file with keys that do more than describe jobs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PrivilegedFile {
    /// The file.
    pub file: String,
    /// The keys.
    pub keys: Vec<PrivilegedKey>,
}

/// A key that does more than describe jobs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PrivilegedKey {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// What it does.
    pub meaning: String,
}

/// Agreements that were taken back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TrustRemoved {
    /// The folders.
    pub removed: Vec<String>,
}
