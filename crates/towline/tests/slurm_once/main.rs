//! Exactly once on a real Slurm cluster: connections are cut, and client, daemon, site and heads
//! killed, at every named point of submit, abort, resubmit and retry and at random moments; then
//! things go on. No job is lost, no attempt starts twice, no two attempts of a run live at once,
//! and nothing is left in the queue or on a node.
//!
//! A seeded tenth runs here; `TOW_SOAK=1` runs all.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod away;
mod campaign;
mod faults;
mod forgotten;
mod lab;
mod nodes;
