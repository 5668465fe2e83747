//! What answers: the first call of every client.

use crate::report::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// The program that answers, and where it stands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct About {
    /// The version of the program.
    pub version: String,
    /// The version of this interface.
    pub api: u32,
    /// The user whose runs these are.
    pub user: String,
    /// The machine.
    pub host: String,
    /// The folder that relative paths and the configuration start from.
    pub folder: String,
    /// The folder above it that code is taken from.
    pub project: String,
    /// The clusters that the configuration names, this machine first.
    pub clusters: Vec<KnownCluster>,
    /// The cluster of a submission that names none.
    pub default_cluster: String,
    /// The time of this machine.
    pub now: Time,
}

/// A cluster that the configuration names.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KnownCluster {
    /// Its name.
    pub name: String,
    /// `local`, `slurm`, `azureml`, …
    pub kind: String,
}
