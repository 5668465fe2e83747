//! The kinds of clusters. Each folder holds one kind, an implementation of the trait
//! `towline_core::cluster::Cluster`.

pub mod azureml;
pub mod features;
pub mod local;
pub mod own_facts;
pub mod registry;
pub mod remembered;
#[cfg(test)]
mod remembered_golden_tests;
pub mod run_files;
pub mod slurm;
