//! What `--json` prints: one typed, documented value per verb. Fields are only ever added.
//! [`schema`] makes the JSON Schema of all of them.

#![warn(missing_docs)]

pub mod abort;
pub mod adopt;
pub mod alloc;
pub mod change;
pub mod clusters;
pub mod config;
pub mod daemon;
pub mod diff;
pub mod doctor;
pub mod failure;
pub mod get;
pub mod history;
pub mod import;
pub mod init;
pub mod login;
pub mod logs;
pub mod ls;
pub mod nodes;
pub mod prune;
pub mod ps;
pub mod query;
pub mod release;
pub mod resubmit;
pub mod rm;
pub mod roles;
pub mod run;
pub mod schema;
pub mod scratch;
pub mod show;
pub mod snapshot;
pub mod submit;
pub mod time;
pub mod transfer;
pub mod trust;
pub mod tunnel;
pub mod ui;
pub mod url;
pub mod why;

pub use failure::Failure;
pub use run::{Attempt, Run, Runs};
pub use time::{Time, Values};
