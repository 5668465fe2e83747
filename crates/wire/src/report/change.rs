//! The answers of `tow hold`, `tow resume`, `tow edit` and `tow tag`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// The runs that were changed, and those that were not.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Changed {
    /// The runs that have the change.
    pub changed: Vec<RunId>,
    /// The runs that could not be changed.
    pub unchanged: Vec<Unchanged>,
}

/// A run that could not be changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Unchanged {
    /// The run.
    pub id: RunId,
    /// Why it could not be changed.
    pub why: String,
}

/// The tags of runs.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Tagged {
    /// The runs whose tags changed.
    pub tagged: Vec<TaggedRun>,
    /// The runs that had these tags already, or did not have those.
    pub unchanged: Vec<RunId>,
}

/// A run with its tags.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaggedRun {
    /// The run.
    pub id: RunId,
    /// All its tags.
    pub tags: Vec<String>,
}
