//! Machines: this one, and those that the system's `ssh` reaches.
//!
//! Both keep the contract of [`towline_core::transport::Transport`]. A command for
//! another machine is quoted in `login_shell.rs`. All connections to a host go through one master process.

pub(crate) mod group;
mod local;
mod login_shell;
pub(crate) mod relay;
pub(crate) mod running;
mod ssh;

pub use local::LocalTransport;
pub(crate) use ssh::{Channel, VerboseChannel};
pub use ssh::{Client, MAX_SOCKET_FOLDER_BYTES, SshTransport};

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use towline_core::{Error, Result};

/// An error for an `argv` that no program can be started with.
fn check(argv: &[&str]) -> Result<()> {
    match argv.first() {
        None | Some(&"") => Err(Error::bug("there is no word to run")),
        // Some shells would take it for an option of their own.
        Some(program) if program.starts_with('-') => Err(Error::refused(format!(
            "`{program}` cannot be a program: it begins with a dash"
        ))),
        _ if argv.iter().any(|word| word.contains('\0')) => Err(Error::refused(
            "a word holds a NUL byte, which no program can be given",
        )),
        _ => Ok(()),
    }
}

/// Whether a program could not be started because it does not exist. If a folder of `PATH` may not
/// be searched, the kernel reports another error.
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

/// The end of `limit`, also of one that is too long for the clock.
fn deadline(limit: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(limit)
        .unwrap_or_else(|| now + Duration::from_secs(1 << 30))
}

/// The beginning of a command, for messages.
fn shown(argv: &[&str]) -> String {
    let line = argv.join(" ");
    let line = line.lines().next().unwrap_or_default();
    if line.chars().count() > 60 {
        line.chars().take(59).chain(['…']).collect()
    } else {
        line.to_owned()
    }
}
