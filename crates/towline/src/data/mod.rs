//! Data on its way: between this machine and datastores, and around an attempt.

pub(crate) mod announced;
pub(crate) mod mount;
pub(crate) mod process;
pub(crate) mod stores;
pub(crate) mod transfers;
