//! The size of a job: how many nodes, ranks and GPUs it gets.

use crate::job::{Job, Launch};
use crate::quantity::Memory;
use crate::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More nodes than this are taken for a mistake.
const MAX_NODES_PER_RUN: u32 = 10_000;

/// Nodes, ranks and what each node needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// The number of nodes.
    pub nodes: u32,
    /// Ranks on each node; with `once`, one rank on node 0 and none elsewhere.
    pub ranks_per_node: u32,
    /// Whether only node 0 has a rank.
    #[serde(default)]
    pub once: bool,
    /// GPUs on each node.
    pub gpus_per_node: u32,
    /// CPUs on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_per_node: Option<u32>,
    /// Memory on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

impl Shape {
    pub const fn world(&self) -> u32 {
        if self.once {
            1
        } else {
            self.nodes * self.ranks_per_node
        }
    }
    /// Ranks on node `node`.
    pub const fn ranks_on(&self, node: u32) -> u32 {
        match (self.once, node) {
            (true, 0) => 1,
            (true, _) => 0,
            (false, _) => self.ranks_per_node,
        }
    }
    pub const fn total_gpus(&self) -> u32 {
        self.nodes * self.gpus_per_node
    }
    /// CPUs of all nodes together: the number asked for, else one per rank.
    pub fn total_cpus(&self) -> u32 {
        match self.cpus_per_node {
            Some(cpus) => self.nodes * cpus,
            None => self.world(),
        }
    }
    pub fn total_memory(&self) -> u64 {
        self.memory
            .map_or(0, |memory| memory.0 * u64::from(self.nodes))
    }
}

/// The shape of a job on nodes with `machine_gpus` GPUs. `total_gpus` is `-n`.
pub fn shape(job: &Job, total_gpus: Option<u32>, machine_gpus: u32) -> Result<Shape> {
    let resources = &job.resources;
    if resources.nodes == Some(0) {
        return Err(Error::config("`resources.nodes` is at least 1").about("resources.nodes"));
    }
    if resources.cpus_per_node == Some(0) {
        return Err(Error::config("`resources.cpus_per_node` is at least 1")
            .about("resources.cpus_per_node"));
    }
    let (nodes, gpus) = match total_gpus {
        None => (
            resources.nodes.unwrap_or(1),
            resources.gpus_per_node.unwrap_or(0),
        ),
        // A job of one node may use all GPUs of a node. A job of several keeps its GPUs per node.
        Some(total) => match (resources.nodes, resources.gpus_per_node) {
            (Some(2..), Some(gpus)) => spread(total, gpus, resources.nodes)?,
            // With a number of nodes, each gets an equal part.
            (Some(nodes @ 2..), None) if total > 0 && total.is_multiple_of(nodes) => {
                (nodes, total / nodes)
            }
            (Some(nodes @ 2..), None) if total > 0 => {
                return Err(Error::refused(format!(
                    "{total} GPUs cannot be shared out among {nodes} nodes"
                ))
                .hint(format!(
                    "ask for {} or {}",
                    total / nodes * nodes,
                    (total / nodes + 1) * nodes
                )));
            }
            (_, gpus) => spread(total, gpus.unwrap_or(0).max(machine_gpus), resources.nodes)?,
        },
    };
    if nodes > MAX_NODES_PER_RUN {
        return Err(
            Error::too_large(format!("{nodes} nodes are more than any cluster has"))
                .about("resources.nodes"),
        );
    }
    let launch = job.launch.unwrap_or_default();
    let ranks_per_node = match launch {
        Launch::PerNode | Launch::Once => 1,
        Launch::PerGpu if gpus == 0 => {
            return Err(Error::config(
                "`launch: per_gpu` starts one rank per GPU, but the job asks for none",
            )
            .hint("ask for some with `-n 4` or `resources.gpus_per_node`")
            .about("launch"));
        }
        Launch::PerGpu => gpus,
        Launch::Ranks(ranks) => ranks,
    };
    Ok(Shape {
        nodes,
        ranks_per_node,
        once: launch == Launch::Once,
        gpus_per_node: gpus,
        cpus_per_node: resources.cpus_per_node,
        memory: resources.memory,
    })
}

/// ACT's rule: GPUs that fit on one node go to one node, more must fill nodes.
fn spread(total: u32, per_node: u32, nodes: Option<u32>) -> Result<(u32, u32)> {
    match (total, nodes) {
        (0, nodes) => Ok((nodes.unwrap_or(1), 0)),
        (total, _) if per_node == 0 => Ok((1, total)),
        (total, _) if total <= per_node => Ok((1, total)),
        (total, _) if total.is_multiple_of(per_node) => Ok((total / per_node, per_node)),
        (total, _) => Err(
            Error::refused(format!("{total} GPUs do not fill nodes of {per_node}")).hint(format!(
                "ask for {} or {}",
                total / per_node * per_node,
                (total / per_node + 1) * per_node
            )),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(text: &str, total: Option<u32>) -> Result<Shape> {
        let node = crate::yaml::parse("job", text).expect("YAML");
        shape(&crate::yaml::decode(&node).expect("a job"), total, 0)
    }

    #[test]
    fn all_nodes_together_need_what_each_needs() {
        let text = "{launch: 2, resources: {nodes: 3, cpus_per_node: 4, memory: 5G}}";
        let shape = shape_of(text, None).expect("a shape");
        assert_eq!(shape.total_cpus(), 12);
        assert_eq!(shape.total_memory(), 15 << 30);
        let plain = shape_of("{launch: 2, resources: {nodes: 3}}", None).expect("a shape");
        assert_eq!((plain.total_cpus(), plain.total_memory()), (6, 0));
    }

    #[test]
    fn gpus_go_to_nodes_in_equal_parts() {
        let two = shape_of("{resources: {nodes: 2}}", Some(8)).expect("a shape");
        assert_eq!((two.nodes, two.gpus_per_node), (2, 4));
        assert!(shape_of("{resources: {nodes: 2}}", Some(7)).is_err());
    }

    #[test]
    fn no_cluster_has_more_nodes_than_the_limit() {
        let nodes = |nodes: u32| shape_of(&format!("{{resources: {{nodes: {nodes}}}}}"), None);
        assert!(nodes(MAX_NODES_PER_RUN).is_ok());
        assert!(nodes(MAX_NODES_PER_RUN + 1).is_err());
        assert!(nodes(MAX_NODES_PER_RUN + 2).is_err());
    }
}
