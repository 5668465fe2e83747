//! Test support: a hermetic home for the real `tow`, a fake cluster with fault switches, and the
//! contract suite that every backend passes.

#![expect(clippy::unwrap_used, reason = "a test environment that cannot be made fails the test")]

pub mod ability;
pub mod contract;
pub mod fake;
mod home;
mod wait;

pub use home::{Home, Output};
pub use wait::until;
