//! What is kept of far clusters in the state folder.

use serde::{Deserialize, Serialize};
use std::path::Path;
use towline_core::config::Cluster;
use towline_core::time::Moment;

/// A cluster as the configuration last had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedCluster {
    pub name: String,
    pub cluster: Cluster,
}

/// When it was last heard of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClusterStatus {
    pub seen: Option<Moment>,
    /// Why it cannot be reached now.
    #[serde(default)]
    pub trouble: Option<String>,
    #[serde(default)]
    pub hints: Vec<String>,
}

impl ClusterStatus {
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}
