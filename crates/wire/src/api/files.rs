//! Files of runs, and downloads.

use super::log::LogRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use towline_core::RunId;

/// Asks what a folder of a run holds.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesList {
    /// The run.
    pub run: RunId,
    /// The folder, relative to where the run started [default: there].
    #[serde(default)]
    pub path: String,
}

/// Asks for the begin of a file of a run.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesRead {
    /// The run.
    pub run: RunId,
    /// The file, relative to where the run started.
    pub path: String,
    /// At most this many bytes [default: 1,000,000; at most 8,000,000].
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The begin of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileBegin {
    /// The bytes, if they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The size of the whole file.
    pub bytes: u64,
    /// There is more than this.
    pub is_cut: bool,
}

/// Asks for an address that gives a log, a file of a run, or a file of a datastore: one of them.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// The log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogRef>,
    /// The run whose `file` it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The file of the run, relative to where it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The file, as STORE:PATH or below a folder of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Where a download is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DownloadPlace {
    /// The path at the same server. A GET there gives the bytes once, within a minute.
    pub path: String,
}

/// What the hidden process that serves files is asked, on its standard input.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FilesAsk {
    /// What a folder holds.
    List(FilesList),
    /// The begin of a file.
    Read(FilesRead),
    /// A head in one line, then every byte.
    Send(Download),
}

/// What comes before the bytes of a download, in one line.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct SendHead {
    /// The name of the file.
    pub name: String,
    /// The number of bytes, if it is known.
    pub bytes: Option<u64>,
}
