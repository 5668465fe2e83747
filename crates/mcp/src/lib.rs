//! `tow mcp`: the interface for agents, by the Model Context Protocol on stdin and stdout.
//!
//! `arguments` says what the tools take, `tools` what they do, by the same calls that pages and
//! editors make. What is allowed is decided by the verbs themselves, which are told that an agent
//! calls; [`User`] says it before.

pub mod arguments;
mod calls;
mod server;
mod tools;
mod untrusted;

pub use server::serve;

use towline_api::session::Session;
use towline_core::Result;
use towline_core::agents::{Allowance, GpuTime};

/// The user for whom an agent acts, as the program knows them.
pub trait User: Send + Sync + 'static {
    /// What the user allows now, and what the agents' runs have taken of it. An error if nothing is
    /// allowed.
    fn allowance(&self) -> Result<(Allowance, GpuTime)>;

    /// A session whose verbs know that an agent of this name calls.
    fn session(&self, agent: &str) -> Result<Session>;
}
