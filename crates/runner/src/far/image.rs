//! The image of a run on a node of a far cluster. The runtime is searched for on the node, and the
//! scheduler tells which GPUs are ours.

use std::path::Path;
use towline_core::cluster::GpuMake;
use towline_core::resolve::Runtime;
use towline_core::{Error, Result};
use towline_host::program::find_program;
use towline_wire::runner::Assignment;

/// The node's own variables that have a meaning inside an image.
const KEPT_VARIABLES: [&str; 5] = [
    "SLURM_",
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
        Error::refused(format!(
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
    let given = given(|name| std::env::var(name).ok());
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

/// The numbers of our GPUs on this node.
fn given(variable: impl Fn(&str) -> Option<String>) -> Vec<u32> {
    let list = ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"]
        .into_iter()
        .find_map(|name| variable(name).filter(|list| !list.is_empty()));
    list.map(|list| {
        list.split(',')
            .filter_map(|number| number.trim().parse().ok())
            .collect()
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_s_own_count_comes_first() {
        let variables = |name: &str| match name {
            "SLURM_JOB_GPUS" => Some("4,6".to_owned()),
            "CUDA_VISIBLE_DEVICES" => Some("0,1".to_owned()),
            _ => None,
        };
        assert_eq!(given(variables), [4, 6]);
        assert_eq!(
            given(|name| (name == "CUDA_VISIBLE_DEVICES").then(|| "1".to_owned())),
            [1]
        );
        assert!(given(|_| None).is_empty() && given(|_| Some("GPU-1234".to_owned())).is_empty());
    }

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
