//! Reaching stores: Azure Blob, S3, a folder; and moving trees between them and this machine.
//!
//! A store is a [`data::Data`]. Transfers are plans first, then acts; nothing is called done that
//! was not verified.

pub mod data;
