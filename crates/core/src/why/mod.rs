//! Why a job failed, read from the end of its log.
//!
//! A wrong reason costs more than none: people stop reading. So a *cause* is claimed only for a
//! message that stands where the real program puts it (the last line of a Python traceback, a
//! shell's own complaint at the very end), and only when the program did not go on after it. If
//! no rule knows the cause, the *error* is quoted as the log tells it, with the deepest line of the
//! user's own code, and nothing is claimed about it.

mod advice;
mod complaint;
mod crash;
mod error;
mod frame;
mod judge;
mod lines;
pub mod modules;
mod quote;
mod rules;
mod torchrun;
mod trace;

#[cfg(test)]
mod tests;

pub use error::{Form, LogError, Place};

use serde::Serialize;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    OutOfMemory,
    GpuOutOfMemory,
    /// `/dev/shm` is full, which often ends data-loading workers in a container.
    SharedMemory,
    MissingModule,
    /// A shared library (`libGL.so.1`) that the image does not have.
    MissingLibrary,
    FileNotFound,
    PermissionDenied,
    DiskFull,
    CudaError,
    /// The program found no GPU, or fewer than it wanted.
    NoGpu,
    GpuEcc,
    /// Communication between ranks failed; mostly because another rank had ended.
    NcclError,
    /// Something outside the job could not be reached.
    Network,
    NotANumber,
    CommandNotFound,
    Segfault,
    PortInUse,
    Killed,
}

impl Class {
    /// The word used in `--json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::OutOfMemory => "out_of_memory",
            Self::GpuOutOfMemory => "gpu_out_of_memory",
            Self::SharedMemory => "shared_memory",
            Self::MissingModule => "missing_module",
            Self::MissingLibrary => "missing_library",
            Self::FileNotFound => "file_not_found",
            Self::PermissionDenied => "permission_denied",
            Self::DiskFull => "disk_full",
            Self::CudaError => "cuda_error",
            Self::NoGpu => "no_gpu",
            Self::GpuEcc => "gpu_ecc",
            Self::NcclError => "nccl_error",
            Self::Network => "network",
            Self::NotANumber => "not_a_number",
            Self::CommandNotFound => "command_not_found",
            Self::Segfault => "segfault",
            Self::PortInUse => "port_in_use",
            Self::Killed => "killed",
        }
    }

    /// A few words for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::OutOfMemory => "out of memory",
            Self::GpuOutOfMemory => "out of GPU memory",
            Self::SharedMemory => "out of shared memory",
            Self::MissingModule => "missing Python module",
            Self::MissingLibrary => "missing shared library",
            Self::FileNotFound => "file not found",
            Self::PermissionDenied => "permission denied",
            Self::DiskFull => "disk full",
            Self::CudaError => "CUDA error",
            Self::NoGpu => "no usable GPU",
            Self::GpuEcc => "broken GPU memory (ECC)",
            Self::NcclError => "communication between ranks failed",
            Self::Network => "network error",
            Self::NotANumber => "not a number (NaN or infinity)",
            Self::CommandNotFound => "command not found",
            Self::Segfault => "segmentation fault",
            Self::PortInUse => "port already in use",
            Self::Killed => "killed",
        }
    }

    /// How likely this failure only follows from another: 0 is a cause of its own. A rank that
    /// loses its peers reports NCCL errors, and the remaining ranks get killed.
    pub(crate) const fn consequence_level(self) -> u8 {
        match self {
            Self::CudaError | Self::Network => 1,
            Self::Segfault => 2,
            Self::Killed => 3,
            Self::NcclError => 4,
            _ => 0,
        }
    }

    /// Whether programs often catch this and try something else. Then the next failure is the
    /// cause.
    pub(crate) const fn is_often_caught(self) -> bool {
        matches!(
            self,
            Self::MissingModule
                | Self::MissingLibrary
                | Self::FileNotFound
                | Self::PermissionDenied
                | Self::CommandNotFound
                | Self::Network
        )
    }
}

/// The number of characters of one line that are shown, at most.
const MAX_LINE_CHARACTERS_SHOWN: usize = 300;

/// Why a log ends in failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub class: Class,
    /// The line of the log that shows it, without colours, cut at 300 characters.
    pub evidence: String,
    /// Whether trying again unchanged can help.
    pub transient: bool,
    /// The next step for the user, one sentence.
    pub next_step: String,
    /// The Python module that is missing. With the code of the run, [`modules::advice`] says more.
    pub module: Option<String>,
}

/// The failure that the end of a log shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The cause, if a rule knows it.
    pub finding: Option<Finding>,
    /// The error in the log's own words. With a finding, it is the one that shows it.
    pub error: Option<LogError>,
    /// The last lines that are not blank.
    pub last_lines: Vec<String>,
}

impl Reading {
    /// How likely this only follows from another rank's end: 0 is a cause of its own. `None`: the
    /// log shows no error.
    pub fn consequence_level(&self) -> Option<u8> {
        let of_finding = self
            .finding
            .as_ref()
            .map(|finding| finding.class.consequence_level());
        of_finding.or_else(|| self.error.as_ref().map(LogError::consequence_level))
    }
}

/// The number of last lines of a log that are kept with its [`Reading`].
const LAST_LINES_KEPT: usize = 3;

/// Reads the end of the log of a job that *failed*: its last 256 KiB.
///
/// Python buffers what it prints to a pipe. So without `PYTHONUNBUFFERED=1` training lines may come
/// after the traceback that ended it. That reads as a program that went on, and the error says so.
pub fn read(tail: &[u8]) -> Reading {
    let lines = lines::split(tail);
    let judge::Judgement { finding, error } = judge::judge(&lines);
    Reading {
        finding,
        error,
        last_lines: last_of(&lines, LAST_LINES_KEPT),
    }
}

/// The first cause in the end of a log; `None` rather than a guess.
pub fn classify(tail: &[u8]) -> Option<Finding> {
    judge::judge(&lines::split(tail)).finding
}

/// The last lines of a log that are not blank, printable.
pub fn last_lines(tail: &[u8], most: usize) -> Vec<String> {
    last_of(&lines::split(tail), most)
}

fn last_of(lines: &[lines::Line], most: usize) -> Vec<String> {
    lines[lines.len().saturating_sub(most)..]
        .iter()
        .map(lines::Line::evidence)
        .collect()
}

/// The log, among those of several ranks, that shows the root cause. A cause of its own counts more
/// than an echo of another rank's end. Among equals the first counts, so give them in the order in
/// which the ranks ended.
pub fn root_cause(readings: &[(u32, Reading)]) -> Option<&(u32, Reading)> {
    readings
        .iter()
        .filter(|(_, reading)| reading.consequence_level().is_some())
        .min_by_key(|(_, reading)| reading.consequence_level())
}
