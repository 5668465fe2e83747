//! A program in a process group of its own, so that it can be ended as a whole.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

/// The group is killed if this is dropped before the program has ended.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    code: Option<i32>,
    is_signalled: bool,
    /// Whether it has a group of its own, or shares that of this process.
    is_own: bool,
}

impl Group {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self {
            child: command.process_group(0).spawn()?,
            code: None,
            is_signalled: false,
            is_own: true,
        })
    }

    /// Starts it in the group of this process, which may read the terminal.
    pub(super) fn start_at_terminal(command: &mut Command) -> io::Result<Self> {
        Ok(Self {
            child: command.spawn()?,
            code: None,
            is_signalled: false,
            is_own: false,
        })
    }

    pub(super) fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }
    pub(super) fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }
    pub(super) fn errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    fn leader(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Whether a signal ended it; false while it runs.
    pub(super) fn is_signalled(&self) -> bool {
        self.is_signalled
    }

    /// Kills all of it. The pid of the leader is still ours, because the leader is not reaped
    /// before [`Self::wait`].
    pub(super) fn kill(&mut self) {
        if self.code.is_some() {
            return;
        }
        match self.leader() {
            Some(leader) if self.is_own => {
                let _ = kill_process_group(leader, Signal::KILL);
            }
            _ => {
                let _ = self.child.kill();
            }
        }
    }

    /// Its exit code, if it has ended.
    pub(super) fn ended(&mut self) -> io::Result<Option<i32>> {
        match (self.code, self.child.try_wait()?) {
            (None, None) => Ok(None),
            _ => self.wait().map(Some),
        }
    }

    /// Its exit code, 128+n after a signal.
    pub(super) fn wait(&mut self) -> io::Result<i32> {
        if let Some(code) = self.code {
            return Ok(code);
        }
        let status = self.child.wait()?;
        let code = status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        self.is_signalled = status.code().is_none();
        self.code = Some(code);
        Ok(code)
    }

    /// As [`Self::wait`]; `None` if it still runs at `deadline`. Its children may run on either
    /// way.
    pub(super) fn wait_until(&mut self, deadline: Option<Instant>) -> io::Result<Option<i32>> {
        let (Some(deadline), Some(leader), None) = (deadline, self.leader(), self.code) else {
            return self.wait().map(Some);
        };
        let (sender, ended) = channel();
        std::thread::Builder::new().spawn(move || {
            // `NOWAIT` leaves the process to be reaped later.
            while matches!(
                rustix::process::waitid(
                    WaitId::Pid(leader),
                    WaitIdOptions::EXITED | WaitIdOptions::NOWAIT
                ),
                Err(rustix::io::Errno::INTR)
            ) {}
            let _ = sender.send(());
        })?;
        match ended.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => Ok(None),
            _ => self.wait().map(Some),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let _ = self.wait();
    }
}
