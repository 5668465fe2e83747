//! What Slurm's own commands print, read into values. One text format that versions 20.11 to 24.11
//! share; Slurm's JSON is another shape in every version and slow. Each file has the arguments of
//! its command beside the reader of its answer. No I/O.
//!
//! A reader refuses what it cannot understand rather than leave a row out: a job that is missing
//! from an answer looks like one that is gone.

pub mod accounting;
pub mod answer;
pub mod config;
pub mod hosts;
pub mod ids;
pub mod job;
pub mod node;
pub mod pairs;
pub mod partition;
pub mod qos;
pub mod queue;
pub mod reservation;
pub mod share;
pub mod tasks;
pub mod values;

use towline_core::Error;

/// Between fields. No name on a sane site holds it.
pub(crate) const FIELD: char = '\u{1f}';
/// Around records: names and comments may hold line breaks.
pub(crate) const RECORD: char = '\u{1e}';

/// An answer that cannot be read tells nothing about any job.
pub(crate) fn unreadable(command: &str, what: &str) -> Error {
    let shown: String = what
        .chars()
        .take(120)
        .map(|c| if c.is_control() { '·' } else { c })
        .collect();
    Error::unreachable(format!("cannot read what `{command}` printed: {shown}"))
}
