//! The flow of a submission, one step in one file.

pub mod code;
pub mod draft;
pub mod plan;

pub use code::{CodePlace, code_place, too_wide};
pub use draft::read_job;
pub use plan::{Request, make_plan};
