//! The answers of `tow clusters`.

use schemars::JsonSchema;
use serde::Serialize;
use towline_core::cloud::Who;

/// The clusters that can be used.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Clusters {
    /// The clusters, by name.
    pub clusters: Vec<Cluster>,
}

/// A cluster, and what is free there. Numbers are null if the cluster could not be asked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cluster {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind: `local`, `slurm`, `azureml`, …
    pub kind: &'static str,
    /// Whether jobs that name no cluster go there.
    pub default: bool,
    /// `ready`, or why it cannot be used.
    pub state: String,
    /// The CPUs of its nodes. Null for a virtual cluster, too.
    pub cpus: Option<u32>,
    /// The CPUs that no job has. Null for a virtual cluster, too.
    pub cpus_free: Option<u32>,
    /// The GPUs of its nodes; of a virtual cluster, those of its quotas.
    pub gpus: Option<u64>,
    /// The GPUs that no job has.
    pub gpus_free: Option<u64>,
    /// The user who is signed in there. Absent if the cluster has no sign-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_in_as: Option<Who>,
}

/// What Azure lets the user use.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Discovered {
    /// The workspaces of Azure ML.
    pub workspaces: Vec<DiscoveredWorkspace>,
    /// The virtual clusters.
    pub virtual_clusters: Vec<VirtualCluster>,
    /// The images that virtual clusters have themselves.
    pub images: Vec<String>,
    /// The ids of user-assigned identities.
    pub identities: Vec<String>,
    /// What could not be asked.
    pub notes: Vec<String>,
}

/// A workspace of Azure ML, and its computes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiscoveredWorkspace {
    /// The workspace.
    #[serde(flatten)]
    pub workspace: Workspace,
    /// Its computes.
    pub computes: Vec<Compute>,
}

/// A workspace of Azure ML. `tow clusters --create-workspace` prints the new one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Workspace {
    /// The id of its subscription.
    pub subscription: String,
    /// Its resource group.
    pub resource_group: String,
    /// Its name.
    pub workspace: String,
}

/// A compute of a workspace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Compute {
    /// Its name.
    pub name: String,
    /// `AmlCompute`, `Kubernetes`, …
    pub kind: String,
    /// The kind of its machines.
    pub vm_size: Option<String>,
    /// The largest number of nodes that it may have.
    pub most_nodes: Option<u64>,
}

/// A virtual cluster.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VirtualCluster {
    /// Its id in Azure.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its region.
    pub location: String,
    /// Its quotas.
    pub quotas: Vec<Quota>,
}

/// The GPUs that a tier may use of a series in a region.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Quota {
    /// The region.
    pub region: String,
    /// The series of machines.
    pub series: String,
    /// The tier, in Azure's word.
    pub tier: String,
    /// The largest number of GPUs.
    pub limit: u64,
    /// The GPUs in use.
    pub used: u64,
}
