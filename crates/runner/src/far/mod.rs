//! A run on a far cluster. The scheduler starts the head, and on every node of the job a runner
//! starts that node's ranks. They communicate through the run's folder, which all hosts share.

pub mod ended_code;
mod head;
mod image;
mod lease;
mod node;
pub mod records;
mod scheduler;

pub use head::head_main;
pub use lease::is_lapsed;
pub use node::{NodeTask, local_disk, node_main};

/// Started by the head on each node: `tow __node STAGE SUBMISSION RUN ATTEMPT`.
pub const NODE_VERB: &str = "__node";
/// The process id of the process that started a runner and ends what it leaves behind: the head, if
/// it is on the same node.
const HEAD_PID_VARIABLE: &str = "TOW_HEAD_PID";
