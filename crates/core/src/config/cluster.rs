//! Clusters, each with the settings of its kind.

use super::cluster_keys::ClusterKeys;
use super::{Credential, Folder};
use crate::quantity::Memory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More GPUs than this in one machine are a mistake.
pub const MAX_LOCAL_GPUS: u32 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterKind {
    Local,
    Slurm,
    Kubernetes,
    Azureml,
    Philly,
}

/// Whether a kind, by its word, is this machine.
pub fn is_this_machine(kind: &str) -> bool {
    kind == ClusterKind::Local.word()
}

impl ClusterKind {
    pub const ALL: [Self; 5] = [
        Self::Local,
        Self::Slurm,
        Self::Kubernetes,
        Self::Azureml,
        Self::Philly,
    ];

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

/// One cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "ClusterKeys", into = "ClusterKeys")]
pub struct Cluster {
    pub kind: KindConfig,
    /// GPUs of one node, where the cluster does not tell.
    pub gpus_per_node: Option<u32>,
    /// What jobs there have unless they say otherwise: keys of a job file.
    pub job: Option<Box<crate::job::Job>>,
    /// The store that folders have on this cluster, under their usual path.
    pub datastore: Option<String>,
    /// Folders that lie elsewhere on this cluster.
    pub folders: BTreeMap<String, Folder>,
    /// Folders of the top that this cluster does not have.
    pub without_folders: Vec<String>,
}

/// What only one kind of cluster has.
#[derive(Debug, Clone, PartialEq)]
pub enum KindConfig {
    Local(LocalConfig),
    Slurm(SlurmConfig),
    Azureml(AzuremlConfig),
    /// This version cannot use it.
    Kubernetes,
    /// This version cannot use it.
    Philly,
}

/// This machine: what to hand out, instead of all that is found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LocalConfig {
    pub gpus: Option<u32>,
    pub cpus: Option<u32>,
    pub memory: Option<Memory>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SlurmConfig {
    /// The host that has its commands, as ssh knows it; none: this machine.
    pub host: Option<String>,
    pub ssh_config: Option<String>,
    pub partition: Option<String>,
    /// Whom runs are charged to, unless a job says otherwise.
    pub account: Option<String>,
    pub stage: Option<String>,
    /// The folder of its commands, where a login does not find them.
    pub slurm_bin: Option<String>,
    pub tiers: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AzuremlConfig {
    pub subscription: Option<String>,
    pub resource_group: Option<String>,
    pub workspace: Option<String>,
    pub compute: Option<String>,
    pub virtual_cluster: Option<String>,
    /// A `config.json` that names subscription, resource group and workspace.
    pub config: Option<String>,
    /// How to sign in; `azure_cli` where nothing is said.
    pub credential: Option<Credential>,
    /// The folder of another Azure CLI login (`AZURE_CONFIG_DIR`).
    pub profile: Option<String>,
    /// Where the resource manager answers, in another cloud than the public one.
    pub endpoint: Option<String>,
    /// Below which path of the workspace's datastore runs are staged.
    pub stage: Option<String>,
    /// For ssh to interactive jobs.
    pub ssh_config: Option<String>,
}

impl KindConfig {
    pub const fn kind(&self) -> ClusterKind {
        match self {
            Self::Local(_) => ClusterKind::Local,
            Self::Slurm(_) => ClusterKind::Slurm,
            Self::Azureml(_) => ClusterKind::Azureml,
            Self::Kubernetes => ClusterKind::Kubernetes,
            Self::Philly => ClusterKind::Philly,
        }
    }

    /// The word of the configuration.
    pub const fn word(&self) -> &'static str {
        self.kind().word()
    }
}

impl Cluster {
    /// One with nothing but the settings of its kind.
    pub const fn of(kind: KindConfig) -> Self {
        Self {
            kind,
            gpus_per_node: None,
            job: None,
            datastore: None,
            folders: BTreeMap::new(),
            without_folders: Vec::new(),
        }
    }

    /// This machine, as it is.
    pub fn local() -> Self {
        Self::of(KindConfig::Local(LocalConfig::default()))
    }

    /// Whether it is this machine.
    pub const fn is_here(&self) -> bool {
        matches!(self.kind, KindConfig::Local(_))
    }

    /// GPUs that are declared for this machine.
    pub const fn declared_gpus(&self) -> Option<u32> {
        match &self.kind {
            KindConfig::Local(local) => local.gpus,
            _ => None,
        }
    }

    /// The host that has its scheduler's commands, and the configuration of ssh that knows it.
    pub const fn login_host(&self) -> Option<(&String, &Option<String>)> {
        match &self.kind {
            KindConfig::Slurm(slurm) => match &slurm.host {
                Some(host) => Some((host, &slurm.ssh_config)),
                None => None,
            },
            _ => None,
        }
    }

    /// How to sign in there.
    pub const fn credential(&self) -> Option<&Credential> {
        match &self.kind {
            KindConfig::Azureml(azure) => azure.credential.as_ref(),
            _ => None,
        }
    }

    /// Whether it goes without a folder that is named for all clusters.
    pub fn lacks_folder(&self, name: &str) -> bool {
        !self.folders.contains_key(name)
            && self.without_folders.iter().any(|lacking| lacking == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_of_another_kind_is_not_here_and_has_its_own_credential() {
        let read = |text: &str| -> Cluster {
            let node = crate::yaml::parse("config", text).expect("YAML");
            crate::yaml::decode(&node).expect("a cluster")
        };
        assert!(Cluster::local().is_here());
        assert!(Cluster::local().credential().is_none());
        let slurm = read("{kind: slurm, host: login}");
        assert!(!slurm.is_here() && slurm.credential().is_none());
        let azure = read(
            "{kind: azureml, subscription: s, resource_group: g, workspace: w, \
             credential: {sas: 'env:KEY'}}",
        );
        assert!(azure.credential().is_some());
    }
}
