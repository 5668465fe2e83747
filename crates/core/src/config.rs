//! The configuration, as a type. Layers and their origins are merged before it is decoded.

use crate::quantity::Memory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands after all layers: defaults < user file < `towline.yaml` < `TOW_*` < flags.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    pub default_cluster: Option<String>,
    /// Local runs start in the folder itself unless told otherwise.
    pub in_place: bool,
    pub clusters: BTreeMap<String, Cluster>,
    pub datastores: BTreeMap<String, Datastore>,
    pub folders: BTreeMap<String, Folder>,
    pub tunnels: BTreeMap<String, Tunnel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterKind {
    Local,
    Slurm,
    Kubernetes,
    Azureml,
    Philly,
}

impl ClusterKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Slurm => "slurm",
            Self::Kubernetes => "kubernetes",
            Self::Azureml => "azureml",
            Self::Philly => "philly",
        }
    }
}

/// One cluster. Keys that its kind does not use are refused when it is opened.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Cluster {
    pub kind: ClusterKind,
    /// Local: GPUs to use, instead of those found.
    #[serde(default)]
    pub gpus: Option<u32>,
    /// Local: CPUs to hand out, instead of all.
    #[serde(default)]
    pub cpus: Option<u32>,
    /// Local: memory to hand out, instead of all.
    #[serde(default)]
    pub memory: Option<Memory>,
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub ssh_config: Option<String>,
    #[serde(default)]
    pub partition: Option<String>,
    #[serde(default)]
    pub stage: Option<String>,
    #[serde(default)]
    pub tiers: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    pub subscription: Option<String>,
    #[serde(default)]
    pub resource_group: Option<String>,
    #[serde(default)]
    pub workspace: Option<String>,
    #[serde(default)]
    pub compute: Option<String>,
    #[serde(default)]
    pub virtual_cluster: Option<String>,
}

impl Cluster {
    pub fn local() -> Self {
        Self {
            kind: ClusterKind::Local,
            gpus: None,
            cpus: None,
            memory: None,
            host: None,
            ssh_config: None,
            partition: None,
            stage: None,
            tiers: BTreeMap::new(),
            subscription: None,
            resource_group: None,
            workspace: None,
            compute: None,
            virtual_cluster: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Datastore {
    pub kind: String,
    #[serde(default)]
    pub account: Option<String>,
    #[serde(default)]
    pub container: Option<String>,
    #[serde(default)]
    pub bucket: Option<String>,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub endpoint: Option<String>,
    #[serde(default)]
    pub credential: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Folder {
    pub datastore: String,
    #[serde(default)]
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Tunnel {
    pub to: String,
    #[serde(default)]
    pub via: Option<String>,
    #[serde(default)]
    pub port: Option<u16>,
}
