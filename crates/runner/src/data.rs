//! The data process of an attempt: it downloads input, holds mounts, and collects output while the
//! run goes on and at its end. It is a separate process because stores are slow and may hang, and a
//! stop must be handled at any time.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use towline_core::cluster::LogSource;
use towline_wire::log_name::LogName;
use towline_wire::runner::{Assignment, DataOrder, DataWord};

/// The hidden verb that starts it.
pub const DATA_VERB: &str = "__data";

#[derive(Debug)]
pub(crate) struct DataProcess {
    child: Child,
    /// Closed when there is nothing more to wait for. Then it collects and exits.
    order: Option<ChildStdin>,
    watch: Option<OwnedFd>,
    /// Output that is not a complete line yet.
    unread_output: Vec<u8>,
    ready: bool,
    /// Its own error message.
    failure: Option<String>,
    ended: Option<bool>,
}

impl DataProcess {
    pub(crate) fn begin(
        order: &DataOrder,
        assignment: &Assignment,
        folder: &Path,
    ) -> io::Result<Self> {
        let node = assignment.gang.as_ref().map_or(0, |place| place.node);
        let log = folder.join(LogName::new(assignment.attempt, LogSource::SetUp(node)).file());
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(log)?;
        let mut command = Command::new("/proc/self/exe");
        // Stores may need settings of the submitter's shell: a proxy, a login of a command-line
        // tool.
        command.env_clear().envs(&assignment.variables.0);
        if let Some(container) = &assignment.container {
            command.envs(&container.variables.0);
        }
        command
            .arg0("tow")
            .arg(DATA_VERB)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log))
            .process_group(0);
        let mut child = command.spawn()?;
        let watch = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let mut to = child
            .stdin
            .take()
            .ok_or_else(|| io::Error::other("no way to tell it anything"))?;
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        to.write_all(&line)?;
        if let Some(from) = &child.stdout {
            rustix::io::ioctl_fionbio(from, true)?;
        }
        Ok(Self {
            child,
            order: Some(to),
            watch,
            unread_output: Vec::new(),
            ready: false,
            failure: None,
            ended: None,
        })
    }

    pub(crate) fn watches(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        // After its end its pipe stays readable and empty.
        let alive = self.ended.is_none();
        let pipe = self
            .child
            .stdout
            .as_ref()
            .filter(|_| alive)
            .map(AsFd::as_fd);
        pipe.into_iter()
            .chain(self.watch.as_ref().filter(|_| alive).map(AsFd::as_fd))
    }

    pub(crate) fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_nonzero().get()
    }

    /// Called when it was reaped, with how it exited.
    pub(crate) fn has_ended(&mut self, well: bool) {
        self.read_output();
        self.ended = Some(well);
    }

    /// Reads its new output.
    pub(crate) fn read_output(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(Ok(count @ 1..)) = self
            .child
            .stdout
            .as_mut()
            .map(|from| from.read(&mut buffer))
        {
            self.unread_output.extend_from_slice(&buffer[..count]);
        }
        while let Some(end) = self.unread_output.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread_output.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(DataWord::Ready) => self.ready = true,
                Ok(DataWord::Failed { why }) => self.failure = Some(why),
                Err(_) => {}
            }
        }
    }

    pub(crate) const fn is_ready(&self) -> bool {
        self.ready
    }

    /// `None` while it lives; then success, or its error.
    pub(crate) fn outcome(&self) -> Option<Result<(), String>> {
        let well = self.ended?;
        Some(match (&self.failure, well) {
            (None, true) => Ok(()),
            (Some(why), _) => Err(why.clone()),
            (None, false) => Err("the process that carries it was killed".to_owned()),
        })
    }

    /// No rank is left: collect the rest, unmount, exit.
    pub(crate) fn finish(&mut self) {
        self.order = None;
    }

    pub(crate) fn kill(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), signal);
        }
    }
}
