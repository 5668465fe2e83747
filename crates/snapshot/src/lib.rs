//! Content-addressed snapshots: walk a tree, store what is new, lay it out again, all verified.
//!
//! A snapshot is a [`manifest::Manifest`] whose digest is its id. Its content is in packs of a
//! [`store::BlobStore`], each chunk once. One root object per snapshot says where each chunk is.
//! Stored objects are never replaced.

pub mod backup;
pub mod check;
mod codec;
mod content;
pub mod continues;
pub mod digest;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod hostile_tests;
mod index;
mod ingest;
pub mod layout;
pub mod manifest;
pub mod pack;
mod pending_deletion;
pub mod problem;
pub mod progress;
pub mod prune;
pub mod read;
pub mod renew;
pub mod root;
pub mod rules;
pub mod shed;
mod stat_cache;
pub mod store;
pub mod take;
mod tree;
pub mod walk;
mod whole;
