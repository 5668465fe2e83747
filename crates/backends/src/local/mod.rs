//! This machine as a cluster. The daemon holds the queue and the history; this module talks to it.

mod cluster;
pub(crate) mod features;
mod fit;
pub mod gpus;
mod page;
pub mod render;

pub use cluster::{LocalCluster, forget, machine_size, read_log};
