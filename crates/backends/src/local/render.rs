//! The resources that a job needs on this machine, and whether it can ever get them.

use towline_core::cluster::Facts;
use towline_core::plan::{self, Request};
use towline_core::quantity::Memory;
use towline_core::resolve::{Resolved, Shape};
use towline_core::{Error, Result};

/// The resources of one run, all its nodes together, because they share this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    pub cpus: u32,
    pub memory: u64,
    pub gpus: u32,
}

/// The need of a job. CPUs that it did not ask for are limited to those of the machine, so that
/// they never make it wait for ever.
pub fn need(shape: &Shape, machine_cpus: u32) -> Need {
    let cpus = match shape.cpus_per_node {
        Some(_) => shape.total_cpus(),
        None => shape.total_cpus().min(machine_cpus.max(1)),
    };
    Need {
        cpus,
        memory: shape.total_memory(),
        gpus: shape.total_gpus(),
    }
}

/// Refuses a request that can never fit, with the reason.
pub fn check_fits(need: &Need, machine: &Need) -> Result<()> {
    let refuse = |key: &str, what: String, has: String| {
        Err(Error::too_large(format!(
            "this machine can never start it: it asks for {what} and there are {has}"
        ))
        .hint("ask for less, or choose another cluster with `-c`")
        .about(key))
    };
    if need.gpus > 0 && machine.gpus == 0 {
        return Err(Error::too_large(format!(
            "this machine can never start it: it asks for {} GPU{} \
            and there are none",
            need.gpus,
            plural(need.gpus)
        ))
        .hint("leave out `-n` to run it without a GPU, or choose another cluster with `-c`")
        .hint(
            "if it has some that were not found, say how many: `TOW_CLUSTERS__LOCAL__GPUS=1`, or \
                `clusters: {local: {gpus: 1}}` in the configuration",
        )
        .about("resources.gpus_per_node"));
    }
    if need.gpus > machine.gpus {
        return refuse(
            "resources.gpus_per_node",
            format!("{} GPU{}", need.gpus, plural(need.gpus)),
            machine.gpus.to_string(),
        );
    }
    if need.cpus > machine.cpus {
        return refuse(
            "resources.cpus_per_node",
            format!("{} CPUs", need.cpus),
            machine.cpus.to_string(),
        );
    }
    if need.memory > machine.memory {
        return refuse(
            "resources.memory",
            format!("{} of memory", Memory(need.memory)),
            Memory(machine.memory).to_string(),
        );
    }
    Ok(())
}

const fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The machine's size from its facts.
pub fn machine(facts: &Facts) -> Need {
    facts.nodes.first().map_or_else(Need::default, |node| Need {
        cpus: node.cpus,
        memory: node.memory,
        gpus: u32::try_from(node.gpus.len()).unwrap_or(u32::MAX),
    })
}

/// The request as text: the program, folder and environment that the runner will use.
pub(super) fn render(resolved: &Resolved, facts: &Facts) -> Result<Request> {
    let machine = machine(facts);
    let need = need(&resolved.shape, machine.cpus);
    check_fits(&need, &machine)?;
    let text = plan::describe(
        resolved,
        &plan::takes(need.cpus, need.gpus, need.memory),
        true,
    );
    Ok(Request { text })
}
