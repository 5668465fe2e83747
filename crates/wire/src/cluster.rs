//! Files about far clusters in the state folder.

use crate::runner::Variables;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use towline_core::config::Cluster;
use towline_core::network;
use towline_core::redact::looks_like_credential;
use towline_core::time::Moment;

/// A cluster as it was last configured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedCluster {
    pub name: String,
    pub cluster: Cluster,
    /// The variables of the client that signing in there needs.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub variables: Variables,
}

fn is_empty(variables: &Variables) -> bool {
    variables.0.is_empty()
}

/// Secrets that a platform gives to one machine: useless on another.
const OF_THE_PLATFORM: [&str; 2] = ["IDENTITY_HEADER", "MSI_SECRET"];

impl NamedCluster {
    /// Reads the stored configuration; `None` if there is none.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        read(path)
    }

    /// The part that may stay on disk after its runs: without the user's secrets.
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

/// When the cluster last answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClusterStatus {
    pub seen: Option<Moment>,
    /// Why it cannot be reached now.
    #[serde(default)]
    pub trouble: Option<String>,
    #[serde(default)]
    pub hints: Vec<String>,
    /// When that trouble was noticed.
    #[serde(default)]
    pub at: Option<Moment>,
}

impl ClusterStatus {
    /// Reads the last status; `None` if there is none.
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
