//! The pieces that this program is put together from: machines, clouds, threads, and what the flow
//! and the clusters take from it.

pub(crate) mod agent;
pub(crate) mod api;
pub(crate) mod cloud;
pub(crate) mod discover;
mod flow_means;
pub(crate) mod machines;
pub(crate) mod means;
pub(crate) mod sign_in;
pub(crate) mod threads;
pub(crate) mod trusting;
