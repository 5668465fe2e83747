//! The answer of `tow import`.

use schemars::JsonSchema;
use serde::Serialize;

/// What became of another tool's files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Imported {
    /// The files that were written, or would be.
    pub files: Vec<ImportedFile>,
    /// One report for each file of the other tool.
    pub reports: Vec<ImportReport>,
    /// Notes about all files together.
    pub notes: Vec<String>,
}

/// A file of ours.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ImportedFile {
    /// Its path.
    pub path: String,
    /// Its name in the current folder.
    pub name: String,
    /// How it came, or would come, to be there.
    pub placement: Placement,
    /// Whether it was written.
    pub written: bool,
    /// Its text.
    pub text: String,
}

/// How a file comes to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// There was none.
    New,
    /// Keys were added to the file that was there.
    Added,
    /// It replaced the file that was there, which is kept as `NAME.old`.
    Replaced,
}

/// What became of the keys of one file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ImportReport {
    /// The file.
    pub source: String,
    /// Keys that became keys of ours.
    pub mapped: Vec<ImportedKey>,
    /// Keys without which nothing is lost.
    pub not_needed: Vec<ImportedKey>,
    /// Keys that have no counterpart.
    pub not_mapped: Vec<ImportedKey>,
    /// The other tool's defaults for keys that the file does not have.
    pub assumed: Vec<ImportedKey>,
    /// Points to check before use.
    pub warnings: Vec<String>,
    /// Commands to run once.
    pub commands: Vec<String>,
}

/// A key of another tool's file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ImportedKey {
    /// The key.
    pub key: String,
    /// `LINE:COLUMN`; empty for a default.
    pub at: String,
    /// The key that it became, or why it became none.
    pub says: String,
}
