//! Machines: this one, and those that the system's `ssh` reaches.
//!
//! Both keep the contract of [`towline_core::transport::Transport`]. What is sent to a shell is
//! quoted in [`quote`] and nowhere else; no connection is opened but through one master for each
//! host.

pub(crate) mod group;
mod local;
pub mod quote;
pub(crate) mod relay;
pub(crate) mod running;
mod ssh;

pub use local::LocalTransport;
pub(crate) use ssh::{Channel, Heard};
pub use ssh::{Client, MAX_SOCKET_FOLDER_BYTES, SshTransport};

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use towline_core::{Error, Result};

/// Words that a program can be started with at all.
fn check(words: &[&str]) -> Result<()> {
    match words.first() {
        None | Some(&"") => Err(Error::bug("there is no word to run")),
        // Some shells would take it for an option of theirs.
        Some(program) if program.starts_with('-') => Err(Error::refused(format!(
            "`{program}` cannot be a program: it begins with a dash"
        ))),
        _ if words.iter().any(|word| word.contains('\0')) => Err(Error::refused(
            "a word holds a NUL byte, which no program can be given",
        )),
        _ => Ok(()),
    }
}

/// Whether a program could not be started because there is none. A folder of the path that may not
/// be looked into makes the kernel say something else.
pub(crate) fn is_missing(program: &OsStr, error: &io::Error) -> bool {
    let is_there = |folder: PathBuf| folder.join(program).is_file();
    match error.kind() {
        io::ErrorKind::NotFound => true,
        io::ErrorKind::PermissionDenied if Path::new(program).components().count() == 1 => {
            std::env::var_os("PATH").is_none_or(|path| !std::env::split_paths(&path).any(is_there))
        }
        _ => false,
    }
}

/// A limit may be as good as none.
fn deadline(limit: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(limit)
        .unwrap_or_else(|| now + Duration::from_secs(1 << 30))
}

/// The words of a command for messages, not too many.
fn shown(words: &[&str]) -> String {
    let line = words.join(" ");
    let line = line.lines().next().unwrap_or_default();
    if line.chars().count() > 60 {
        line.chars().take(59).chain(['…']).collect()
    } else {
        line.to_owned()
    }
}
