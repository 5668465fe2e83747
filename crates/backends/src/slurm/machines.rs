//! Kinds of machines of a Slurm cluster: a job names a kind of GPU, or a feature of nodes.

use std::collections::BTreeMap;
use towline_core::plan::Plan;
use towline_core::suggest::nearest;
use towline_wire::site::SiteFacts;

/// The kinds of GPUs, each with the number of nodes that have it.
pub(super) fn gpu_types(site: &SiteFacts) -> Vec<(String, String)> {
    let mut nodes_with: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &site.facts.nodes {
        let mut kinds: Vec<&str> = node.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds.into_iter().filter(|kind| !kind.is_empty()) {
            *nodes_with.entry(kind).or_default() += 1;
        }
    }
    let described = |(kind, count): (&str, usize)| {
        let nodes = if count == 1 { "node" } else { "nodes" };
        (kind.to_owned(), format!("a GPU, on {count} {nodes}"))
    };
    nodes_with.into_iter().map(described).collect()
}

pub(super) fn has_gpu(site: &SiteFacts, kind: &str) -> bool {
    site.facts
        .nodes
        .iter()
        .flat_map(|node| &node.gpus)
        .any(|gpu| gpu.name.eq_ignore_ascii_case(kind))
}

/// The note for a name that is close to a kind of GPU. It is no error, because any other name is
/// taken for a feature of nodes, and Slurm alone knows those.
pub(super) fn near_gpu(plan: &Plan, site: &SiteFacts) -> Option<String> {
    let wanted = plan.job.resources.instance_type.as_deref()?;
    if has_gpu(site, wanted) {
        return None;
    }
    let kinds = gpu_types(site);
    let near = nearest(wanted, kinds.iter().map(|(kind, _)| kind.as_str()))?;
    Some(format!(
        "`{wanted}` is no kind of GPU there and is asked for as a feature of nodes; did you mean \
            `{near}`?"
    ))
}
