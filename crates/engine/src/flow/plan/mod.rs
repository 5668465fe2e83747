//! From a job to a plan for one cluster.

mod make;
mod notes;

pub use make::{Request, make_plan};
