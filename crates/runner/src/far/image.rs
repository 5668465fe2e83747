//! The image of a run on a node of a far cluster. The runtime is searched for on the node, and the
//! scheduler tells which GPUs are ours.

use std::path::Path;
use towline_core::cluster::GpuMake;
use towline_core::resolve::Runtime;
use towline_core::{Error, Result};
use towline_host::program::find_program;
use towline_slurm::job_variables;
use towline_wire::runner::Assignment;

/// The node's own variables that have a meaning inside an image.
const KEPT_VARIABLES: [&str; 5] = [
    job_variables::PREFIX,
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
];

pub(super) fn is_kept(variable: &str) -> bool {
    KEPT_VARIABLES
        .iter()
        .any(|begin| variable.starts_with(begin))
}

/// Adapts the container of an assignment to this node. `code` is the code's folder on the
/// submitter's machine.
pub(super) fn fit(assignment: &mut Assignment, node: u32, code: Option<&str>) -> Result<()> {
    let Some(order) = &mut assignment.container else {
        return Ok(());
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let runtime = order.container.runtime;
    let program = find_program(runtime.word(), &path)
        .and_then(|program| program.into_os_string().into_string().ok());
    order.container.program = program.ok_or_else(|| {
        Error::unsupported(format!(
            "the image needs {}, which this node has not",
            runtime.word()
        ))
        .hint("PATH over there is that of the job: a module may be missing")
    })?;
    order.variables.0 = std::env::vars()
        .filter(|(name, _)| !name.starts_with("TOW_"))
        .collect();
    // A folder of the submitter's machine does not exist here, or is another one of the same name.
    order.binds.retain(|bind| Some(bind.as_str()) != code);
    let make = make();
    let given = super::scheduler::this_node_gpus();
    if runtime == Runtime::Apptainer {
        // Apptainer shows all GPUs of the job, under the numbers that the scheduler gave.
        let word = match make {
            _ if given.is_empty() => None,
            GpuMake::Nvidia => Some("--nv"),
            GpuMake::Amd => Some("--rocm"),
            GpuMake::Declared => None,
        };
        order.container.options.extend(word.map(str::to_owned));
    } else if !given.is_empty() && make != GpuMake::Declared {
        assignment.gpus = (0..assignment.shape.nodes)
            .map(|number| {
                if number == node {
                    given.clone()
                } else {
                    Vec::new()
                }
            })
            .collect();
    }
    assignment.gpu_make = make;
    Ok(())
}

fn make() -> GpuMake {
    let is_there = |device: &str| Path::new(device).exists();
    match (is_there("/dev/nvidiactl"), is_there("/dev/kfd")) {
        (true, _) => GpuMake::Nvidia,
        (false, true) => GpuMake::Amd,
        (false, false) => GpuMake::Declared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_s_own_variables_stay_outside() {
        assert!(
            is_kept("SLURM_JOB_ID")
                && is_kept("CUDA_VISIBLE_DEVICES")
                && !is_kept("PATH")
                && !is_kept("HOME")
        );
    }
}
