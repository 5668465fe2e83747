//! Slurm as a cluster.

pub mod cluster;
pub mod commands;
pub mod config;
mod fit;
pub mod link;
mod page;
pub mod parse;
pub mod reasons;
pub mod refusal;
pub mod render;
pub mod script;
pub mod state;

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod recorded_refusals;
#[cfg(test)]
mod soup;
