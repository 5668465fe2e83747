//! The answer of `tow release`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// What `tow release` let go.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Released {
    /// The allocation; with `--all`, a list of them.
    pub released: ReleasedIds,
}

/// One allocation, or a list of them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReleasedIds {
    /// The one that was named, or the only one.
    One(RunId),
    /// Every one, by `--all`.
    All(Vec<RunId>),
}

impl Released {
    /// The ids of what was let go.
    pub fn ids(&self) -> &[RunId] {
        match &self.released {
            ReleasedIds::One(id) => std::slice::from_ref(id),
            ReleasedIds::All(ids) => ids,
        }
    }
}
