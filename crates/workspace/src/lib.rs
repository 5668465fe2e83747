//! Workspaces: folders on fast disks that nobody else backs up. Which there are, what is done to one
//! on the machine that has it, and how its backups go.

pub mod act;
pub mod define;
pub mod far;
mod place;
pub mod remote;
mod setup;
pub mod status;

pub use define::Known;

use std::sync::Arc;
use tokio::runtime::Runtime;
use towline_core::Result;
use towline_core::redact::SecretSet;
use towline_core::resolve::NamedStore;
use towline_core::workspace::Workspace;
use towline_io::data::Data;
use towline_wire::workspace::ScratchOrder;

/// Everything another process needs to act on a workspace.
#[derive(Debug, Clone)]
pub struct Task {
    pub workspace: Workspace,
    pub order: ScratchOrder,
    pub secrets: SecretSet,
}

/// How this program opens datastores: it knows the user's credentials, and the way to other
/// machines.
#[derive(Debug, Clone, Copy)]
pub struct Datastores {
    /// Opens one with the secrets that came with the task.
    pub open: fn(&NamedStore, &SecretSet) -> Result<Arc<dyn Data>>,
    /// The runtime that requests to stores are made on.
    pub runtime: fn() -> Result<&'static Runtime>,
}
