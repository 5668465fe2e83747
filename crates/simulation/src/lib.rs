//! A simulated world around the daemon: clients, runners, far clusters, a disk and a clock. Every
//! process can die between any two steps, answers come late, twice or never, the disk fills, files
//! cannot be read, clocks jump. A seed makes a story, and the same seed makes the same story.
//!
//! The daemon and the workers of clusters are the shipped ones. Runners, schedulers and the disk are
//! models of what the shipped ones do.

mod action;
mod client;
mod cluster;
mod daemon;
mod facts;
mod heal;
mod history;
mod plans;
mod random;
mod replies;
mod runner;
mod runners;
mod story;
mod tasks;
mod worker;
mod world;

pub use action::{Action, ClusterAct, Fault, Job};
pub use plans::Plans;
pub use story::{Failure, Story, run, shrink};

/// The plans that stories submit. Made once, because reading the sample takes time.
pub fn plans() -> Plans {
    Plans::new()
}
