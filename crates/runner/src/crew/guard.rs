//! The process that the service starts: it forwards SIGTERM, and cleans up if the runner below it
//! is killed.

use super::place::Station;
use super::status_file::StatusFile;
use super::{CrewTask, SIGTERM_EXIT_CODE, complain};
use crate::far::records::Due;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, waitpid};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use towline_core::reason::{Cause, Ending};

/// The process id of a runner's guard.
const GUARD_PID_VARIABLE: &str = "TOW_CREW_GUARD";

pub(super) fn guarded_by() -> Option<u32> {
    std::env::var(GUARD_PID_VARIABLE)
        .ok()
        .and_then(|pid| pid.parse().ok())
}

/// Starts this command again as a child, and exits as the child does.
pub(super) fn guard(task: &CrewTask, station: &Station) -> io::Result<i32> {
    let (mut receiver, sender) = UnixStream::pair()?;
    receiver.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, sender)?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("tow")
        .args(std::env::args_os().skip(1))
        .env(GUARD_PID_VARIABLE, std::process::id().to_string())
        .stdin(Stdio::null());
    let runner = Pid::from_child(&command.spawn()?);
    let ended = pidfd_open(runner, PidfdFlags::empty())?;
    let status = loop {
        let _ = poll(
            &mut [
                PollFd::new(&receiver, PollFlags::IN),
                PollFd::new(&ended, PollFlags::IN),
            ],
            None,
        );
        if receiver.read(&mut [0; 8]).is_ok_and(|count| count > 0) {
            // A service that signals all processes makes the runner receive this twice, which does
            // no harm.
            let _ = rustix::process::kill_process(runner, Signal::TERM);
        }
        match waitpid(Some(runner), WaitOptions::NOHANG) {
            Ok(Some((_, status))) if status.exited() || status.signaled() => break status,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    if let Some(code) = status.exit_status() {
        // Everything worth keeping has been uploaded.
        let _ = std::fs::remove_dir_all(super::carrier::own_folder(task, station.node));
        return Ok(code);
    }
    if status.terminating_signal() == Some(signal_hook::consts::SIGTERM) {
        // SIGTERM came before the runner could handle it: nothing had begun.
        return Ok(SIGTERM_EXIT_CODE);
    }
    towline_host::process::kill_all_descendants();
    towline_host::mounts::release_below(&super::carrier::mounts(task, station.node));
    complain(&format!("the runner of node {} was killed", station.node));
    if station.node > 0 {
        return Ok(1);
    }
    let mut status_file = StatusFile::read(task)?;
    status_file.end_open_attempt(
        &Ending::cause(Cause::NodeFailed).detail("the runner of node 0 was killed"),
    )?;
    status_file.conclude();
    // The runner may have recorded how the run ended before it was killed. Then we exit
    // accordingly.
    let policy = super::order(task)?.plan.resolved.retry;
    match status_file.due(policy.as_ref()) {
        Due::Nothing(ending) => Ok(ending.passed_code()),
        _ => Ok(1),
    }
}
