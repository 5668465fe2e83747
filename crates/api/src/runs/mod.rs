//! What the history and the runners know of runs.

pub mod fresh;
pub mod page;
