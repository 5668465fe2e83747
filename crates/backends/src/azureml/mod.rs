//! Azure ML: computes of a workspace, Kubernetes attached to it (ITP), and virtual clusters of
//! Singularity. REST only; one code path, three flavours.
//!
//! A job is created under its run's id, so that creating it twice gives one job. It runs `tow
//! __crew`. The program, the code and the order come through the workspace's own datastore, and
//! status documents, logs and results go back the same way. See `towline_wire::crew`.
//!
//! Calls to the service, for any number of runs (`towline/tests/azureml/polite.rs` counts them):
//! - A submission creates each job with one call. Its other calls do not grow with the number of
//!   runs.
//! - The daemon asks every 4 to 20 s: one call per job for up to 20 jobs, else the pages of one
//!   list (50 jobs each). In between it lists the status documents of all runs in one listing of
//!   blobs.
//! - `tow ps` asks nothing, `tow ps --remote` the pages of one list.
//! - A client that follows a run adds one listing of that run's logs to each look.
//! - An abort is one call and one object in the stage for each job, and one call for why each
//!   ended.

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
pub(crate) mod features;
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
pub(crate) mod roles;
pub mod site;
mod stage;
mod state;
mod submit;
mod suggestions;
mod vault;
mod words;
mod workspaces;

pub(crate) use define::define;
pub(crate) use discover_page::discovered;
