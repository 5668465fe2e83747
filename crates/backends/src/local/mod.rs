//! This machine as a cluster. The daemon is the cluster: it keeps the queue and the history; this
//! side talks to it.

mod cluster;
mod fit;
pub mod gpus;
mod page;
pub mod render;

pub use cluster::{LocalCluster, forget, machine_size, read_log};
