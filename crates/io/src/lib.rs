//! Reaching stores (Azure Blob, S3, a folder) and moving trees between them; reaching machines.
//!
//! A store is a [`data::Data`], also the folder on this side, so that every transfer is a copy
//! from one store to another. Nothing is called done that was not verified.

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
mod random;
pub mod retry;
pub mod s3;
mod sparse;
pub mod transfer;
mod tree;
mod trust;
pub mod tunnel;
pub mod web;
