//! The answer of `tow url`.

use schemars::JsonSchema;
use serde::Serialize;

/// An address at which anybody can read a file, for a while.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileUrl {
    /// The path, as it is shown.
    pub path: String,
    /// The address.
    pub url: String,
}
