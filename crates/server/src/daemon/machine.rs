//! This machine's size and GPUs, as the daemon hands them out.

use std::collections::BTreeSet;
use towline_backends::local::gpus;
use towline_backends::local::render::Need;
use towline_core::cluster::{GpuFacts, GpuMake};
use towline_wire::daemon::Limits;

/// What this machine has, before the limits of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hardware {
    pub cpus: u32,
    pub memory: u64,
    /// How many GPUs there are, by a quick look.
    pub gpus: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    hardware: Hardware,
    pub(super) limits: Limits,
    pub(super) cpus: u32,
    pub(super) memory: u64,
    /// By count only, until a query has named them.
    pub(super) gpus: Vec<GpuFacts>,
}

impl Machine {
    pub(super) fn new(hardware: Hardware, limits: Limits) -> Self {
        Self {
            hardware,
            limits,
            cpus: limits.cpus.unwrap_or(hardware.cpus),
            memory: limits.memory.unwrap_or(hardware.memory),
            gpus: gpus::declared(limits.gpus.unwrap_or(hardware.gpus)),
        }
    }

    /// The same machine with other limits.
    pub(super) fn limited(&self, limits: Limits) -> Self {
        Self::new(self.hardware, limits)
    }

    pub(super) fn whole(&self) -> Need {
        Need {
            cpus: self.cpus,
            memory: self.memory,
            gpus: u32::try_from(self.gpus.len()).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn usable_gpus(&self) -> BTreeSet<u32> {
        self.gpus
            .iter()
            .filter(|gpu| gpu.busy_with.is_none())
            .map(|gpu| gpu.index)
            .collect()
    }

    pub(super) fn gpu_make(&self) -> GpuMake {
        self.gpus.first().map_or(GpuMake::Nvidia, |gpu| gpu.make)
    }
}
