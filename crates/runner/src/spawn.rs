//! Starting a runner, from the daemon's side.

use crate::journal::Journal;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use towline_wire::layout::StateFolder;

/// Variables that a runner needs for itself, or for the daemon it may start, besides those of the
/// network. It gets no other variable of the daemon.
const OWN_VARIABLES: [&str; 9] = [
    "PATH",
    "HOME",
    "USER",
    "TOW_CRASH_AT",
    "TOW_CRASH_ONCE",
    "TOW_GRACE_MILLIS",
    "TOW_COLLECT_SECONDS",
    "TOW_DAEMON_IDLE_SECONDS",
    "TOW_HISTORY_JOURNAL",
];

/// Starts a guard and through it a runner named `name`; returns our end of its control socket and
/// the guard. The caller's folder is the runners' and is inherited. The journal exists and is
/// locked before the guard does.
pub fn spawn_runner(state: &StateFolder, name: &str) -> io::Result<(UnixStream, Child)> {
    let journal = Journal::create(&state.runner_journal(name))?;
    let (ours, theirs) = UnixStream::pair()?;
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(state.daemon_log())?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("tow")
        .args([crate::GUARD_VERB, name])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::from(journal))
        .stderr(Stdio::from(log))
        .env_clear();
    for variable in OWN_VARIABLES
        .into_iter()
        .chain(towline_core::network::VARIABLES)
    {
        if let Some(value) = std::env::var_os(variable) {
            command.env(variable, value);
        }
    }
    let child = command.spawn()?;
    Ok((ours, child))
}
