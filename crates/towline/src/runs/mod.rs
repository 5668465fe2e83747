//! What is known of runs: how they stand, their logs, their code, and why one failed.

pub(crate) mod change;
pub(crate) mod code_diff;
pub(crate) mod failure;
pub(crate) mod far;
pub(crate) mod far_files;
pub(crate) mod follow;
pub(crate) mod freshen;
pub(crate) mod logfiles;
pub(crate) mod loglines;
