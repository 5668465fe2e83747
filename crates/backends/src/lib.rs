//! The kinds of cluster. Each folder holds one, in the same rooms, behind the seam
//! `towline_core::backend::Backend`.

pub mod azureml;
pub mod far;
pub mod local;
pub mod slurm;
