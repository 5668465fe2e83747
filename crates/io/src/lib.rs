//! Access to stores (Azure Blob, S3, folders), copies between them, and access to machines.
//!
//! A store is a [`data::Data`]. A folder of this machine is one too, so every transfer is a copy
//! from one store to another. Every copy is verified before it counts as done.

pub mod azure;
mod buffer;
pub mod credential;
pub mod data;
pub mod far_folder;
pub mod folder;
pub mod listed;
pub mod machine;
pub mod network;
pub mod open;
pub mod packed_program;
mod random;
pub mod retry;
pub mod s3;
mod sparse;
pub mod transfer;
mod tree;
mod trust;
pub mod tunnel;
pub mod web;
