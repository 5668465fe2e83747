//! A cluster of any kind: what it has, and what it says of runs.

mod facts;
mod logs;
mod records;
mod report;

pub use facts::{Facts, GpuFacts, GpuMake, NodeFacts};
pub use logs::{Cursor, LogChunk, LogLength, LogSource};
pub use records::{Claim, End, Held, JobStart, Started};
pub use report::{AttemptReport, Explanation, FileEntry, KnownJob, Observed, RunRef, RunReport};
