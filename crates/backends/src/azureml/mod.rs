//! Azure ML: computes of a workspace, Kubernetes attached to it (ITP), and virtual clusters of
//! Singularity. REST only; one code path, three flavours.
//!
//! A job is put under its run's id, so that putting it twice is putting it once. What it runs is
//! `tow __crew`, brought with code and order through the workspace's own datastore; what becomes of
//! it comes back the same way. See `towline_wire::crew`.
//!
//! What is asked of the service, for however many runs (`towline/tests/azureml/polite.rs` counts):
//! a submission puts each job once, and what else it needs does not grow with its runs; the daemon
//! asks every 4 to 20 s, each job by itself up to 20 of them, else the pages of one list (50 jobs
//! each), and between that lists the news of all runs in one listing of blobs; `tow ps` asks
//! nothing, `tow ps
//! --remote` the pages of one list; who follows a run adds one listing of that run's logs to each look.
//! An abort is one call and one word in the stage for each job, and one call for why each ended.

mod artifacts;
mod cancel;
mod clear;
mod client;
pub mod cluster;
pub mod config;
mod data;
mod define;
pub mod discover;
mod discover_page;
mod explain;
mod fit;
mod fits;
mod identity;
mod image;
pub mod known;
mod limits;
mod logs;
mod machines;
mod memory;
mod notes;
mod observe;
mod page;
mod payload;
mod probe;
mod reach;
mod report;
pub mod site;
mod stage;
mod state;
mod submit;
mod suggestions;
mod vault;
mod words;
mod workspaces;

pub use data::WORKSPACE_STORE;
pub(crate) use define::define;
pub(crate) use discover_page::discovered;
