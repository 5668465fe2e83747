//! This machine as a cluster. The daemon is the cluster: it keeps the queue and the history; this
//! side talks to it.

mod backend;
pub mod client;
pub mod gpus;
pub mod render;
pub mod stop;

pub use backend::{LocalBackend, forget, machine_size, read_log};
