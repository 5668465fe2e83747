//! Stops the daemon: by a request, or by signals if it does not answer. Runs go on either way.

use crate as client;
use rustix::process::Signal;
use std::time::{Duration, Instant};
use towline_core::{Error, Result};
use towline_wire::layout::StateFolder;

/// How long the daemon may take to exit after SIGTERM.
const AFTER_TERM: Duration = Duration::from_secs(2);
const AFTER_KILL: Duration = Duration::from_secs(5);

/// How the daemon came to exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// There was none.
    NotThere,
    /// It exited on request.
    Left,
    /// This process did not answer and was killed.
    Ended(i32),
}

/// Makes the daemon exit, whatever state it is in.
pub fn stop(state: &StateFolder) -> Result<Stopped> {
    if !client::is_there(state)? {
        return Ok(Stopped::NotThere);
    }
    if client::ask_to_leave(state) {
        return Ok(Stopped::Left);
    }
    let Some(pid) = daemon(state)? else {
        return if client::is_there(state)? {
            Err(Error::unreachable(
                "the daemon does not answer, and its process cannot be seen from here",
            )
            .hint("it may run in another container or as another user: end it from there"))
        } else {
            Ok(Stopped::Left)
        };
    };
    for (signal, limit) in [(Signal::TERM, AFTER_TERM), (Signal::KILL, AFTER_KILL)] {
        // Signal it only while it holds the lock, because its pid may belong to another process by
        // now.
        if daemon(state)? == Some(pid) {
            towline_host::process::signal(pid, signal);
        }
        let begun = Instant::now();
        while client::is_there(state)? {
            if begun.elapsed() >= limit {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if !client::is_there(state)? {
            return Ok(Stopped::Ended(pid));
        }
    }
    Err(Error::unreachable(format!(
        "the daemon (process {pid}) cannot be ended: it hangs in the kernel"
    ))
    .hint("most often a disk or a network file system does not answer; see `dmesg`"))
}

/// The process that holds the daemon's lock, if it is a daemon of `tow`.
fn daemon(state: &StateFolder) -> Result<Option<i32>> {
    let lock = state.daemon_lock();
    let holder = towline_host::lock::holder(&lock)
        .map_err(|error| Error::from_io(format!("{} cannot be checked", lock.display()), error))?;
    let Some(pid) = holder else { return Ok(None) };
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).skip(1);
    if (words.next(), words.next()) == (Some(b"daemon".as_slice()), Some(b"run".as_slice())) {
        return Ok(Some(pid));
    }
    Err(Error::conflict(format!(
        "process {pid} holds {} and is not a daemon of tow",
        lock.display()
    ))
    .hint("it was not touched; end it yourself if nothing needs it"))
}
