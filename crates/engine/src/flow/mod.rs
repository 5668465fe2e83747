//! The flow of a submission, one step in one file.

pub mod code;
pub mod data;
pub mod draft;
mod open_cluster;
pub mod outside;
pub mod plan;
pub mod waiting;

pub use code::{CodePlace, code_place};
pub use draft::{CodeChoice, Origin, read_job, with_defaults};
pub use open_cluster::{OpenCluster, Terminal};
pub use outside::Outside;
pub use plan::{Prepared, Request, can_start_now, make_plan, plan_for};
