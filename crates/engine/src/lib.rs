//! The engine: configuration layers, the history of runs, and the flow from a job to a submission. It
//! uses clusters through their seam and knows no kind of them.

pub mod act_layout;
pub mod added;
pub mod flow;
pub mod history;
mod kind_keys;
pub mod layers;
pub mod privilege;
pub mod project;
pub mod trust;
mod variables;
