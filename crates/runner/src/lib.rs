//! Runs on a node of a run: claims the attempt, runs set-up, starts the ranks, forwards signals,
//! leaves no process behind, and records how it ended.
//!
//! Each runner has two processes. The *guard* is the parent: if the runner is killed, its processes
//! become children of the guard, which ends them and records `node_failed`. Both hold the lock on
//! the runner's journal. That lock, not a pid, tells whether an attempt can still be alive.

pub mod assemble;
mod attempt;
mod carry;
mod code;
mod container;
mod control;
pub mod crew;
mod data;
mod end_signal;
pub mod far;
mod gang;
mod guard;
mod inner;
pub mod journal;
mod launch;
mod memory;
mod program;
pub mod spawn;

pub use carry::runner_main;
pub use data::DATA_VERB;
pub use guard::guard_main;
pub use inner::{INNER_VERB, inner_main};
pub use memory::memory_is_enforced;

/// The hidden verbs that start the two processes.
pub const GUARD_VERB: &str = "__guard";
pub const RUNNER_VERB: &str = "__runner";
