//! The answer of `tow alloc`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;

/// Nodes that are held now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Allocated {
    /// The id of the allocation, which is a run.
    pub id: RunId,
    /// The cluster that has the nodes.
    pub cluster: String,
    /// The names of the nodes; none for this machine.
    pub hosts: Vec<String>,
    /// The name by which ssh reaches the first node.
    pub alias: &'static str,
}
