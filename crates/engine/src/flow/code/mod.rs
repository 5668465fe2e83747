//! The code of a job: where it lies, what of it travels, and taking it.

mod place;

pub use place::{CodePlace, code_place, too_wide};
