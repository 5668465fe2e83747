//! Readers of the output of Slurm's own commands. They read one text format that versions 20.11 to
//! 24.11 share, because Slurm's JSON differs in every version and is slow. Each file has the
//! arguments of its command beside the reader of its answer. No I/O.
//!
//! A reader refuses an answer that it cannot understand. It never leaves a row out, because a job
//! that is missing from an answer looks like one that is gone.

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

/// Separates fields. No name on a sane site contains it.
pub(crate) const FIELD: char = '\u{1f}';
/// Surrounds records, because names and comments may contain line breaks.
pub(crate) const RECORD: char = '\u{1e}';

/// An answer that cannot be read says nothing about any job.
pub(crate) fn unreadable(command: &str, what: &str) -> Error {
    let shown: String = what
        .chars()
        .take(120)
        .map(|c| if c.is_control() { '·' } else { c })
        .collect();
    Error::unreachable(format!("cannot read what `{command}` printed: {shown}"))
}
