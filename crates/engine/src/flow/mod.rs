//! The flow of a submission: draft, code, data, plan, send. Each step is one file or one folder. It
//! takes the results of the steps before it. [`Outside`] is the program around the flow.

pub mod code;
pub mod data;
pub mod draft;
mod open_cluster;
pub mod outside;
pub mod plan;
pub mod send;
pub mod waiting;

pub use code::{CodePlace, code_place};
pub use draft::{CodeChoice, Origin, read_job, with_defaults};
pub use open_cluster::{OpenCluster, Terminal};
pub use outside::Outside;
pub use plan::{Prepared, Request, can_start_now, make_plan, plan_for};
pub use send::{reach, send};
