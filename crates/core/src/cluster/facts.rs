//! The facts of a cluster: nodes, GPUs, and their users.

use crate::RunId;
use crate::cloud::Who;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The resources of a cluster, as far as it reports them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Facts {
    pub nodes: Vec<NodeFacts>,
    /// Notes for the user: "GPUs found through nvidia-smi", "cgroups not delegated".
    pub notes: Vec<String>,
    /// Facts of this kind of cluster alone, in its own shape.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub own: Value,
    /// The signed-in user, if the cluster needs one.
    #[serde(skip)]
    pub signed_in_as: Option<Who>,
    /// GPUs that may be used, if the nodes do not report them.
    #[serde(skip)]
    pub gpu_quota: Option<GpuQuota>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuQuota {
    pub limit: u64,
    pub free: u64,
}

impl Facts {
    /// The make of its GPUs, if it has any.
    pub fn gpu_make(&self) -> Option<GpuMake> {
        let mut gpus = self.nodes.iter().flat_map(|node| &node.gpus);
        gpus.next().map(|gpu| gpu.make)
    }

    /// The largest number of GPUs in one node.
    pub fn gpus_per_node(&self) -> u32 {
        self.nodes
            .iter()
            .map(|node| u32::try_from(node.gpus.len()).unwrap_or(u32::MAX))
            .max()
            .unwrap_or(0)
    }
}

impl NodeFacts {
    /// GPUs that no run and no other process uses.
    pub fn free_gpus(&self) -> u64 {
        let is_free = |gpu: &&GpuFacts| gpu.run.is_none() && gpu.busy_with.is_none();
        self.gpus.iter().filter(is_free).count() as u64
    }
    pub const fn free_cpus(&self) -> u32 {
        self.cpus.saturating_sub(self.cpus_used)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// The cluster's own word for its state: `idle`, `drained`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// The users of running jobs there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// The number of its CPUs.
    pub cpus: u32,
    /// The CPUs that jobs have.
    pub cpus_used: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// The bytes of its memory that jobs have.
    pub memory_used: u64,
    /// Its GPUs.
    pub gpus: Vec<GpuFacts>,
}

/// One GPU and its user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GpuFacts {
    /// The number in `CUDA_VISIBLE_DEVICES` or `ROCR_VISIBLE_DEVICES`.
    pub index: u32,
    /// Its model.
    pub name: String,
    /// Its make.
    pub make: GpuMake,
    /// Its memory in bytes.
    pub memory: u64,
    /// The bytes of its memory in use.
    #[serde(default)]
    pub memory_used: u64,
    /// The run that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Set if processes outside of Towline use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_with: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GpuMake {
    #[default]
    Nvidia,
    Amd,
    /// Declared in the configuration, not detected.
    Declared,
}
