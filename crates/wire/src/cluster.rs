//! What is kept of far clusters in the state folder.

use crate::runner::Variables;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use towline_core::config::Cluster;
use towline_core::network;
use towline_core::redact::looks_like_credential;
use towline_core::time::Moment;

/// A cluster as the configuration last had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedCluster {
    pub name: String,
    pub cluster: Cluster,
    /// Of the caller's environment, what signing in there needs.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub variables: Variables,
}

fn is_empty(variables: &Variables) -> bool {
    variables.0.is_empty()
}

/// What a platform gives a machine to be somebody: of no use elsewhere.
const OF_THE_PLATFORM: [&str; 2] = ["IDENTITY_HEADER", "MSI_SECRET"];

impl NamedCluster {
    /// As it was kept; `None` where it never was.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        read(path)
    }

    /// What may be kept on disk after its runs: no secret of the user's.
    #[must_use]
    pub fn lasting(&self) -> Self {
        let is_secret = |name: &str, value: &str| {
            looks_like_credential(name)
                || (network::VARIABLES.contains(&name) && network::holds_password(value))
        };
        let stays =
            |name: &str, value: &str| OF_THE_PLATFORM.contains(&name) || !is_secret(name, value);
        let variables = self
            .variables
            .0
            .iter()
            .filter(|(name, value)| stays(name, value))
            .map(|(name, value)| (name.clone(), value.clone()));
        Self {
            name: self.name.clone(),
            cluster: self.cluster.clone(),
            variables: Variables(variables.collect()),
        }
    }
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
    /// When that was found.
    #[serde(default)]
    pub at: Option<Moment>,
}

impl ClusterStatus {
    /// As it was last written; `None` where it never was.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        read(path)
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(io::Error::from)
            .map_err(named),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(named(error)),
    }
}
