//! Test support: a hermetic home for the real `tow`, a toy cluster with faults, and the contract
//! suite that every kind of cluster passes; real services to test against, and an emulator of
//! Azure ML.

#![expect(
    clippy::unwrap_used,
    reason = "a test environment that cannot be made fails the test"
)]

pub mod ability;
pub mod aml;
mod answers;
pub mod campaign;
pub mod console;
pub mod contract;
pub mod disk;
pub mod exposure;

mod home;
pub mod page;
mod program;
pub mod real;
mod schema;
pub mod toy;
pub mod transport_contract;
mod wait;

pub use home::{Home, Output};
pub use program::program;
pub use wait::{until, until_within};
