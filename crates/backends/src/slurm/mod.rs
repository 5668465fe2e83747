//! Slurm as a cluster.

pub mod backend;
pub mod commands;
pub mod config;
mod far;
pub mod link;
pub mod parse;
pub mod reasons;
pub mod refusal;
pub mod render;
pub mod script;
pub mod state;

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod soup;
