//! The answer of `tow nodes`.

use super::clusters::{Quota, Workspace};
use crate::site::SiteFacts;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use towline_core::cloud::Who;
use towline_core::cluster::{Facts, NodeFacts};

/// The nodes of a cluster, and what else its kind has to tell.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Nodes {
    /// The nodes.
    pub nodes: Vec<NodeFacts>,
    /// What the user should know about them.
    pub notes: Vec<String>,
    /// What this kind of cluster has to tell, as its backend wrote it.
    #[serde(flatten)]
    #[schemars(with = "OwnFacts")]
    pub own: Map<String, Value>,
}

impl From<Facts> for Nodes {
    fn from(facts: Facts) -> Self {
        let own = match facts.own {
            Value::Object(own) => own,
            _ => Map::new(),
        };
        Self {
            nodes: facts.nodes,
            notes: facts.notes,
            own,
        }
    }
}

/// What one kind of cluster has to tell. A backend writes it; this is its shape.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OwnFacts {
    /// A kind that has nothing more to tell.
    Nothing {},
    /// Slurm.
    Slurm(Box<SiteFacts>),
    /// Azure ML.
    Azureml(Box<AzuremlFacts>),
}

/// What Azure ML tells of a workspace and of its compute.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AzuremlFacts {
    /// The workspace.
    pub scope: Workspace,
    /// `aml` (compute of Azure ML), `itp` (Kubernetes) or `singularity` (a virtual cluster).
    pub flavour: String,
    /// The id of the compute in Azure.
    pub compute_id: String,
    /// The region of the workspace.
    pub location: String,
    /// The tenant of the workspace.
    pub tenant: String,
    /// The address of the workspace's run history.
    pub api: String,
    /// The address of the portal.
    pub studio: String,
    /// The workspace's default datastore.
    pub store: AzuremlStore,
    /// The names of the workspace's datastores.
    pub store_names: BTreeSet<String>,
    /// The workspace's datastores, by `ACCOUNT/CONTAINER`.
    pub stores: BTreeMap<String, String>,
    /// The id of the workspace's vault.
    pub vault: Option<String>,
    /// The user-assigned identities of the workspace, by name.
    pub identities: BTreeMap<String, AzuremlIdentity>,
    /// The kind of machine of the compute.
    pub vm_size: Option<String>,
    /// The kinds of machines that jobs can have.
    pub instances: Vec<AzuremlInstance>,
    /// The quotas of a virtual cluster.
    pub quotas: Vec<Quota>,
    /// The largest number of nodes of the compute.
    pub most_nodes: Option<u32>,
    /// The kind of pod that Kubernetes takes if a job names none.
    pub usual_pod: Option<String>,
    /// The names of images that a virtual cluster has itself.
    pub images: BTreeSet<String>,
    /// The user who is signed in.
    pub who: Option<Who>,
    /// The users whose jobs run there now. Absent if that could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<Vec<Holder>>,
}

/// A datastore of a workspace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AzuremlStore {
    /// Its name.
    pub name: String,
    /// The storage account.
    pub account: String,
    /// The container.
    pub container: String,
    /// The address of the account's blobs.
    pub endpoint: String,
}

/// A user-assigned identity.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AzuremlIdentity {
    /// Its id in Azure.
    pub id: String,
    /// Its client id.
    pub client_id: String,
}

/// A kind of machine.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AzuremlInstance {
    /// Its name.
    pub name: String,
    /// Its series.
    pub series: String,
    /// The number of its GPUs.
    pub gpus: u32,
    /// The number of its CPUs.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// Whether its GPUs are AMD's.
    pub amd: bool,
}

/// A user whose jobs run on the compute.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Holder {
    /// The user.
    pub user: String,
    /// The number of nodes.
    pub nodes: u32,
    /// The jobs.
    pub jobs: Vec<String>,
}
