//! Ctrl-Z: the process stops as any other of its job, and goes on when the shell says so.

use rustix::process::{
    Signal, getpgrp, getpid, getppid, getsid, kill_current_process_group, kill_process,
};

/// Asks the whole job to stop, this process among it: a script that started it stops with it. The
/// signal comes back to [`super::signals`], so that the terminal is given back first.
pub(super) fn ask_to_stop() {
    if can_be_continued() {
        // If the job cannot be asked, it goes on.
        let _ = kill_current_process_group(Signal::TSTP);
    }
}

/// Stops this process until somebody continues it.
pub(super) fn stop() {
    // Our own handler took the place of what SIGTSTP does, so the process is stopped by this one.
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Whether a shell can continue this job. One that is the first of its terminal has no shell: it
/// would stand still for ever.
fn can_be_continued() -> bool {
    let session = getsid(None).ok();
    let of_parent = getppid().and_then(|parent| getsid(Some(parent)).ok());
    session.is_some() && session == of_parent && session != Some(getpgrp())
}
