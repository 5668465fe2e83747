//! The nouns and rules of Towline: ids, jobs, plans, run states, seams and errors.
//!
//! Nothing here opens a file, a socket or a clock, or reads the environment: every function maps
//! values to values. Code that touches the world lives in the crates around this one.

pub mod after;
pub mod agents;
pub mod bastion;
pub mod change;
pub mod cloud;
pub mod cluster;
pub mod command;
pub mod config;
pub mod counts;
pub mod defaults;
pub mod error;
pub mod event;
pub mod id;
pub mod image;
pub mod iso8601;
pub mod job;
pub mod network;
pub mod obstacle;
pub mod plan;
pub mod process_limits;
pub mod quantity;
pub mod quote;
pub mod rank;
pub mod reason;
pub mod record;
pub mod redact;
pub mod resolve;
pub mod retry;
pub mod secret_name;
pub mod state;
pub mod suggest;
pub mod sweep;
pub mod template;
pub mod time;
pub mod token;
pub mod transport;
pub mod tunnel;
pub mod visible;
pub mod why;
pub mod workspace;
pub mod yaml;

pub use error::{Error, ErrorKind, Result, Retry};
pub use id::RunId;
