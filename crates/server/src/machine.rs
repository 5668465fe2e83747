//! This machine's size and GPUs, as the daemon hands them out.

use std::collections::BTreeSet;
use towline_backends::local::render::Need;
use towline_backends::local::{gpus, machine_size};
use towline_core::cluster::{GpuFacts, GpuMake};
use towline_wire::daemon::Limits;

#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    pub(crate) limits: Limits,
    pub(crate) cpus: u32,
    pub(crate) memory: u64,
    pub(crate) gpus: Vec<GpuFacts>,
}

impl Machine {
    /// Finds CPUs and memory at once; GPUs by count only, until [`look_at_gpus`] has queried them.
    pub(crate) fn new(limits: Limits) -> Self {
        let size = machine_size(&limits);
        let count = limits.gpus.unwrap_or_else(gpus::count_quickly);
        Self {
            limits,
            cpus: size.cpus,
            memory: size.memory,
            gpus: gpus::declared(count),
        }
    }

    pub(crate) fn whole(&self) -> Need {
        Need {
            cpus: self.cpus,
            memory: self.memory,
            gpus: u32::try_from(self.gpus.len()).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn usable_gpus(&self) -> BTreeSet<u32> {
        self.gpus
            .iter()
            .filter(|gpu| gpu.busy_with.is_none())
            .map(|gpu| gpu.index)
            .collect()
    }

    pub(crate) fn gpu_make(&self) -> GpuMake {
        self.gpus.first().map_or(GpuMake::Nvidia, |gpu| gpu.make)
    }
}

/// The GPUs with their users. Starts programs, so it takes time. A number from the configuration
/// wins over the number found: a smaller one limits, a larger one is believed.
pub(crate) fn look_at_gpus(limits: Limits, ours: &dyn Fn(i32) -> bool) -> Vec<GpuFacts> {
    let mut found = gpus::detect(ours);
    match limits.gpus.map(|count| count as usize) {
        Some(count) if count <= found.len() => found.truncate(count),
        Some(count) => {
            let declared = gpus::declared(u32::try_from(count).unwrap_or(u32::MAX));
            found.extend(declared.into_iter().skip(found.len()));
        }
        None => {}
    }
    found
}
