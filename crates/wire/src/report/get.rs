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
