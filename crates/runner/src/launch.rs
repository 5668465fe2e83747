//! Starting the processes of an attempt: set-up once per node, then the ranks.

use crate::container::{self, User};
use crate::memory::MemoryGroup;
use crate::program::{self, Executable, NotExecutable};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, WaitStatus, pidfd_open};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use towline_core::cluster::{GpuMake, LogSource};
use towline_core::rank::{Gang, Place, node_variables, rank_variables};
use towline_core::resolve::Runtime;
use towline_wire::log_name::LogName;
use towline_wire::runner::Assignment;

/// How long a runtime may take to remove a container.
const CONTAINER_REMOVAL_TIMEOUT: Duration = Duration::from_secs(20);

/// A process of the attempt. It writes its log itself, without a pipe through us.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Readable when it has ended.
    pub(crate) watch: Option<OwnedFd>,
    pub(crate) source: LogSource,
    pub(crate) node: u32,
    pub(crate) status: Option<WaitStatus>,
}

/// The values that all processes of an attempt share.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) assignment: &'a Assignment,
    pub(crate) folder: &'a Path,
    pub(crate) hosts: &'a [String],
    pub(crate) port: u16,
    /// By node; empty where memory is only counted.
    pub(crate) memory: &'a [MemoryGroup],
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error(transparent)]
    Program(#[from] NotExecutable),
    #[error("cannot start in {folder}: {source}")]
    Start { folder: String, source: io::Error },
    #[error("cannot open the log {path}: {source}")]
    Log { path: String, source: io::Error },
}

impl LaunchError {
    pub(crate) const fn exit_code(&self) -> i32 {
        match self {
            Self::Program(problem) => problem.exit_code(),
            _ => 126,
        }
    }

    /// The system's error, where one is the reason.
    pub(crate) const fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Program(problem) => problem.io_error(),
            Self::Start { source, .. } | Self::Log { source, .. } => Some(source),
        }
    }
}

/// The endings of the script files of an attempt.
pub(crate) const SCRIPT_ENDINGS: [&str; 2] = ["script", "setup"];

impl Launch<'_> {
    pub(crate) fn set_up(&self) -> Result<Vec<Process>, LaunchError> {
        let lines = format!("{}\n", self.assignment.setup.join("\n"));
        self.nodes()
            .map(|node| {
                let file = self.own_file("setup");
                let executable = program::script(&lines, self.workdir(), self.path(), &file)?;
                self.start(
                    &executable,
                    node,
                    LogSource::SetUp(node),
                    node_variables(&self.gang(), node),
                )
            })
            .collect()
    }

    pub(crate) fn ranks(&self) -> Result<Vec<Process>, LaunchError> {
        let shape = &self.assignment.shape;
        let file = self.own_file("script");
        let executable =
            program::prepare(&self.assignment.program, self.workdir(), self.path(), &file)?;
        let gang = self.gang();
        let mut processes = Vec::new();
        for node in self.nodes() {
            for local_rank in 0..shape.ranks_on(node) {
                let place = Place { node, local_rank };
                let source = LogSource::Rank(place.rank(shape));
                match self.start(&executable, node, source, rank_variables(&gang, place)) {
                    Ok(process) => processes.push(process),
                    Err(error) => {
                        // All ranks start, or none.
                        towline_host::process::kill_all_descendants();
                        return Err(error);
                    }
                }
            }
        }
        Ok(processes)
    }

    /// Starts this program again, with the attempt on its stdin: in the image, or without one.
    /// Variables are in no argument and in no file.
    pub(crate) fn inside(&self) -> Result<Process, LaunchError> {
        let program = self.assignment.container.as_ref().map_or_else(
            || "the runner".to_owned(),
            |order| order.container.program.clone(),
        );
        let start_error = |source: io::Error| {
            LaunchError::Program(NotExecutable::Broken(program.clone(), source))
        };
        let text = serde_json::to_vec(&container::inner(self.assignment))
            .map_err(|error| start_error(error.into()))?;
        let order_file = memfd_create("attempt", MemfdFlags::CLOEXEC)
            .map_err(|error| start_error(error.into()))?;
        let mut order_file = File::from(order_file);
        order_file
            .write_all(&text)
            .and_then(|()| order_file.rewind())
            .map_err(start_error)?;
        let source = LogSource::SetUp(self.nodes().start);
        let path = self
            .folder
            .join(LogName::new(self.assignment.attempt, source).file());
        let log_error = |source| LaunchError::Log {
            path: path.display().to_string(),
            source,
        };
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(log_error)?;
        let errors = log.try_clone().map_err(log_error)?;
        let mut command = self.inner_command().map_err(start_error)?;
        command
            .stdin(Stdio::from(order_file))
            .stdout(Stdio::from(log))
            .stderr(Stdio::from(errors))
            .process_group(0);
        let mut start = || command.spawn();
        let spawned = match self.memory.first() {
            Some(group) => group.within(&mut start).and_then(|spawned| spawned),
            None => start(),
        };
        let pid = Pid::from_child(&spawned.map_err(start_error)?);
        let watch = pidfd_open(pid, PidfdFlags::empty()).ok();
        Ok(Process {
            pid: pid.as_raw_nonzero().get(),
            watch,
            source,
            node: self.nodes().start,
            status: None,
        })
    }

    fn inner_command(&self) -> io::Result<Command> {
        let Some(order) = &self.assignment.container else {
            let mut command = Command::new("/proc/self/exe");
            command
                .env_clear()
                .arg0("tow")
                .arg(crate::INNER_VERB)
                .arg(self.folder);
            return Ok(command);
        };
        let own = self.own_program()?;
        let user = User {
            user: rustix::process::getuid().as_raw(),
            group: rustix::process::getgid().as_raw(),
        };
        let mut command = Command::new(&order.container.program);
        command.env_clear().envs(&order.variables.0);
        command.args(container::arguments(
            order,
            self.assignment,
            &self.folder.to_string_lossy(),
            &own.to_string_lossy(),
            user,
        ));
        Ok(command)
    }

    /// The path of this program, to be bound into a container: a copy if another version has
    /// replaced the file.
    fn own_program(&self) -> io::Result<PathBuf> {
        let own = std::env::current_exe()?;
        if own.exists() {
            return Ok(own);
        }
        let copy = self.folder.join(".runner");
        std::fs::copy("/proc/self/exe", &copy)?;
        Ok(copy)
    }

    /// Removes the container. Ending the client of a runtime with a daemon does not end its
    /// container.
    pub(crate) fn remove_container(&self) {
        if let Some(order) = self
            .assignment
            .container
            .as_ref()
            .filter(|order| order.container.runtime != Runtime::Apptainer)
        {
            let mut command = Command::new(&order.container.program);
            command.env_clear().envs(&order.variables.0).args([
                "rm",
                "--force",
                &container::name(self.assignment),
            ]);
            let Ok(mut removing) = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
            else {
                return;
            };
            // A runtime that hangs is not waited for; its processes below us are killed with all
            // others.
            let watch = pidfd_open(Pid::from_child(&removing), PidfdFlags::empty());
            let ended = watch.is_ok_and(|watch| {
                let limit = crate::carry::timespec(CONTAINER_REMOVAL_TIMEOUT);
                poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&limit))
                    .is_ok_and(|ready| ready > 0)
            });
            if !ended {
                let _ = removing.kill();
            }
            let _ = removing.wait();
        }
    }

    /// Removes the scripts, which nothing reads any more.
    pub(crate) fn remove_scripts(&self) {
        for what in SCRIPT_ENDINGS {
            let _ = std::fs::remove_file(self.own_file(what));
        }
    }

    /// A file that only this runner writes. Nodes that share the folder have one each, because a
    /// script must not change while a shell reads it.
    fn own_file(&self, what: &str) -> PathBuf {
        let attempt = self.assignment.attempt;
        self.folder.join(match &self.assignment.gang {
            Some(place) => format!("attempt-{attempt}.node-{}.{what}", place.node),
            None => format!("attempt-{attempt}.{what}"),
        })
    }

    /// The nodes that this runner has: all, or one.
    fn nodes(&self) -> std::ops::Range<u32> {
        match &self.assignment.gang {
            Some(place) => place.node..place.node + 1,
            None => 0..self.assignment.shape.nodes,
        }
    }

    fn group_of(&self, node: u32) -> Option<&MemoryGroup> {
        self.memory.get((node - self.nodes().start) as usize)
    }

    fn workdir(&self) -> &Path {
        Path::new(&self.assignment.workdir)
    }

    fn path(&self) -> Option<&str> {
        self.assignment.variables.0.get("PATH").map(String::as_str)
    }

    fn gang(&self) -> Gang<'_> {
        Gang {
            run: &self.assignment.run,
            attempt: self.assignment.attempt,
            shape: &self.assignment.shape,
            master_addr: &self.hosts[0],
            master_port: self.port,
            hosts: self.hosts,
        }
    }

    fn start(
        &self,
        executable: &Executable,
        node: u32,
        source: LogSource,
        own: Vec<(&'static str, String)>,
    ) -> Result<Process, LaunchError> {
        let path: PathBuf = self
            .folder
            .join(LogName::new(self.assignment.attempt, source).file());
        let log_error = |source| LaunchError::Log {
            path: path.display().to_string(),
            source,
        };
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(log_error)?;
        let errors = log.try_clone().map_err(log_error)?;
        let mut command = Command::new(&executable.file);
        command
            .arg0(&executable.name)
            .args(&executable.arguments)
            .env_clear()
            .envs(&self.assignment.variables.0)
            .envs(self.gpu_variables(node))
            .envs(own)
            .env("TOW_RUN_DIR", self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::from(log))
            .stderr(Stdio::from(errors))
            .process_group(0);
        // Python buffers its output by default, and a buffer is lost if Python is killed.
        if !self.assignment.variables.0.contains_key("PYTHONUNBUFFERED") {
            command.env("PYTHONUNBUFFERED", "1");
        }
        let limits = self.assignment.limits.as_ref();
        let pid_of = |child: &std::process::Child| Some(Pid::from_child(child));
        let mut start = || {
            in_folder(self.workdir(), || {
                towline_host::limits::start_with(limits, || command.spawn(), pid_of)
            })
        };
        let spawned = match self.group_of(node) {
            Some(group) => group.within(&mut start).and_then(|spawned| spawned),
            None => start(),
        };
        let child = spawned.map_err(|source| LaunchError::Start {
            folder: self.assignment.workdir.clone(),
            source,
        })?;
        let pid = Pid::from_child(&child);
        // Opened before the process could be reaped, so the pid is still this process.
        let watch = pidfd_open(pid, PidfdFlags::empty()).ok();
        Ok(Process {
            pid: pid.as_raw_nonzero().get(),
            watch,
            source,
            node,
            status: None,
        })
    }

    fn gpu_variables(&self, node: u32) -> BTreeMap<&'static str, String> {
        let Some(gpus) = self.assignment.gpus.get(node as usize) else {
            return BTreeMap::new();
        };
        let list = gpus
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",");
        match self.assignment.gpu_make {
            GpuMake::Amd => [
                ("ROCR_VISIBLE_DEVICES", list.clone()),
                ("CUDA_VISIBLE_DEVICES", list),
            ]
            .into(),
            // Numbers as `nvidia-smi` gives them, not by speed.
            GpuMake::Nvidia | GpuMake::Declared => [
                ("CUDA_VISIBLE_DEVICES", list),
                ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
            ]
            .into(),
        }
    }
}

/// Changes into `folder` around `start`. A child with a folder of its own is forked with all our
/// memory; one that inherits the folder is spawned without, in a fraction of the time.
fn in_folder<T>(folder: &Path, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let home = File::open(".")?;
    std::env::set_current_dir(folder)?;
    let started = start();
    rustix::process::fchdir(&home)?;
    started
}

/// A port nobody listens on now, for `MASTER_PORT`.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map_or(29_500, |address| address.port())
}
