//! Slurm as a cluster. Its commands, answers and the text of its scripts are in `towline-slurm`.

pub mod cluster;
pub mod config;
pub(crate) mod features;
mod fit;
pub mod link;
mod machines;
mod page;
pub mod render;
