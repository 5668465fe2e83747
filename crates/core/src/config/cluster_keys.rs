//! A cluster as it is written: one flat mapping, whose kind says which keys mean something.

use super::cluster::{AzuremlConfig, Cluster, ClusterKind, KindConfig, LocalConfig, SlurmConfig};
use super::{Credential, Folder};
use crate::quantity::Memory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every key that some kind has.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClusterKeys {
    kind: ClusterKind,
    /// Local: GPUs to use, instead of those found.
    #[serde(default)]
    gpus: Option<u32>,
    /// Local: CPUs to hand out, instead of all.
    #[serde(default)]
    cpus: Option<u32>,
    /// Local: memory to hand out, instead of all.
    #[serde(default)]
    memory: Option<Memory>,
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    ssh_config: Option<String>,
    #[serde(default)]
    partition: Option<String>,
    /// Slurm: whom runs are charged to, unless a job says otherwise.
    #[serde(default)]
    account: Option<String>,
    #[serde(default)]
    stage: Option<String>,
    /// Slurm: the folder of its commands, where a login does not find them.
    #[serde(default)]
    slurm_bin: Option<String>,
    #[serde(default)]
    tiers: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    subscription: Option<String>,
    #[serde(default)]
    resource_group: Option<String>,
    #[serde(default)]
    workspace: Option<String>,
    #[serde(default)]
    compute: Option<String>,
    #[serde(default)]
    virtual_cluster: Option<String>,
    /// Azure ML: a `config.json` that names subscription, resource group and workspace.
    #[serde(default)]
    config: Option<String>,
    /// Azure ML: how to sign in; `azure_cli` where nothing is said.
    #[serde(default)]
    credential: Option<Credential>,
    /// Azure ML: the folder of another Azure CLI login (`AZURE_CONFIG_DIR`).
    #[serde(default)]
    profile: Option<String>,
    /// Azure ML: where the resource manager answers, in another cloud than the public one.
    #[serde(default)]
    endpoint: Option<String>,
    /// GPUs of one node, where the cluster does not tell.
    #[serde(default)]
    gpus_per_node: Option<u32>,
    /// What jobs there have unless they say otherwise: keys of a job file.
    #[serde(default)]
    job: Option<Box<crate::job::Job>>,
    /// The store that folders have on this cluster, under their usual path.
    #[serde(default)]
    datastore: Option<String>,
    /// Folders that lie elsewhere on this cluster.
    #[serde(default)]
    folders: BTreeMap<String, Folder>,
    /// Folders of the top that this cluster does not have.
    #[serde(default)]
    without_folders: Vec<String>,
}

/// Keys that every kind has.
const COMMON: [&str; 6] = [
    "kind",
    "gpus_per_node",
    "job",
    "datastore",
    "folders",
    "without_folders",
];
const LOCAL: [&str; 3] = ["gpus", "cpus", "memory"];
const SLURM: [&str; 7] = [
    "host",
    "ssh_config",
    "partition",
    "account",
    "stage",
    "slurm_bin",
    "tiers",
];
const AZUREML: [&str; 11] = [
    "subscription",
    "resource_group",
    "workspace",
    "compute",
    "virtual_cluster",
    "config",
    "credential",
    "profile",
    "endpoint",
    "stage",
    "ssh_config",
];

/// The keys that mean something to a kind. A kind that this version cannot use has keys that it
/// does not know.
pub fn keys_of(kind: ClusterKind) -> Option<Vec<&'static str>> {
    let own: &[&str] = match kind {
        ClusterKind::Local => &LOCAL,
        ClusterKind::Slurm => &SLURM,
        ClusterKind::Azureml => &AZUREML,
        ClusterKind::Kubernetes | ClusterKind::Philly => return None,
    };
    Some([&COMMON, own].concat())
}

impl From<ClusterKeys> for Cluster {
    fn from(keys: ClusterKeys) -> Self {
        let kind = match keys.kind {
            ClusterKind::Local => KindConfig::Local(LocalConfig {
                gpus: keys.gpus,
                cpus: keys.cpus,
                memory: keys.memory,
            }),
            ClusterKind::Slurm => KindConfig::Slurm(SlurmConfig {
                host: keys.host,
                ssh_config: keys.ssh_config,
                partition: keys.partition,
                account: keys.account,
                stage: keys.stage,
                slurm_bin: keys.slurm_bin,
                tiers: keys.tiers,
            }),
            ClusterKind::Azureml => KindConfig::Azureml(AzuremlConfig {
                subscription: keys.subscription,
                resource_group: keys.resource_group,
                workspace: keys.workspace,
                compute: keys.compute,
                virtual_cluster: keys.virtual_cluster,
                config: keys.config,
                credential: keys.credential,
                profile: keys.profile,
                endpoint: keys.endpoint,
                stage: keys.stage,
                ssh_config: keys.ssh_config,
            }),
            ClusterKind::Kubernetes => KindConfig::Kubernetes,
            ClusterKind::Philly => KindConfig::Philly,
        };
        Self {
            kind,
            gpus_per_node: keys.gpus_per_node,
            job: keys.job,
            datastore: keys.datastore,
            folders: keys.folders,
            without_folders: keys.without_folders,
        }
    }
}

impl From<Cluster> for ClusterKeys {
    fn from(cluster: Cluster) -> Self {
        let mut keys = Self::none(cluster.kind.kind());
        match cluster.kind {
            KindConfig::Local(local) => {
                (keys.gpus, keys.cpus, keys.memory) = (local.gpus, local.cpus, local.memory);
            }
            KindConfig::Slurm(slurm) => {
                (keys.host, keys.ssh_config) = (slurm.host, slurm.ssh_config);
                (keys.partition, keys.account) = (slurm.partition, slurm.account);
                (keys.stage, keys.slurm_bin) = (slurm.stage, slurm.slurm_bin);
                keys.tiers = slurm.tiers;
            }
            KindConfig::Azureml(azure) => {
                (keys.subscription, keys.resource_group) =
                    (azure.subscription, azure.resource_group);
                (keys.workspace, keys.compute) = (azure.workspace, azure.compute);
                (keys.virtual_cluster, keys.config) = (azure.virtual_cluster, azure.config);
                (keys.credential, keys.profile) = (azure.credential, azure.profile);
                (keys.endpoint, keys.stage) = (azure.endpoint, azure.stage);
                keys.ssh_config = azure.ssh_config;
            }
            KindConfig::Kubernetes | KindConfig::Philly => {}
        }
        keys.gpus_per_node = cluster.gpus_per_node;
        (keys.job, keys.datastore) = (cluster.job, cluster.datastore);
        (keys.folders, keys.without_folders) = (cluster.folders, cluster.without_folders);
        keys
    }
}

impl ClusterKeys {
    const fn none(kind: ClusterKind) -> Self {
        Self {
            kind,
            gpus: None,
            cpus: None,
            memory: None,
            host: None,
            ssh_config: None,
            partition: None,
            account: None,
            stage: None,
            slurm_bin: None,
            tiers: BTreeMap::new(),
            subscription: None,
            resource_group: None,
            workspace: None,
            compute: None,
            virtual_cluster: None,
            config: None,
            credential: None,
            profile: None,
            endpoint: None,
            gpus_per_node: None,
            job: None,
            datastore: None,
            folders: BTreeMap::new(),
            without_folders: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_common_keys_and_its_own() {
        let local = keys_of(ClusterKind::Local).expect("a kind of this version");
        assert!(LOCAL.iter().chain(&COMMON).all(|key| local.contains(key)));
        assert_eq!(local.len(), LOCAL.len() + COMMON.len());
        assert_eq!(keys_of(ClusterKind::Philly), None);
    }
}
