//! What `tow` does on a node of a run: claims the attempt, runs set-up, starts the ranks, forwards
//! the end, leaves nothing behind, and records how it went.
//!
//! Two processes per runner. The *guard* is above: should the runner be killed, everything below
//! it falls to the guard, which ends it and records `node_failed`. Both hold the lock on the
//! runner's journal; that lock, not a pid, says whether an attempt can still be alive.

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
