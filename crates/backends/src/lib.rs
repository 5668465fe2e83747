//! The kinds of cluster. Each folder holds one, in the same rooms, behind the seam
//! `towline_core::cluster::Cluster`.

pub mod azureml;
pub mod local;
pub mod own_facts;
pub mod registry;
pub mod remembered;
#[cfg(test)]
mod remembered_golden_tests;
pub mod run_files;
pub mod slurm;
