//! A machine that the system's `ssh` reaches, with all the user has configured for it.
//!
//! One master process for each host signs in once and is shared by every `tow` of this user for a
//! day. Each call is a session of it; a call never opens a connection of its own. Output that a
//! profile prints before a command does not count as the command's.
//!
//! A timeout ends the `ssh` here; the command on the far host runs on if it does not notice.
//! Signing in again, when the master is gone, has a timeout of its own.

mod call;
mod channel;
mod client;
mod denied;
mod failure;
mod files;
mod marks;
mod master;
mod resolved;
mod sign_in;
mod slots;

use super::login_shell::login_line;
use super::relay::Relay;
use super::{check, deadline, shown};
pub(crate) use channel::{Channel, VerboseChannel};
pub use client::Client;
use resolved::Resolved;
use slots::{SessionLength, Slots};
use std::ffi::OsString;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use towline_core::transport::{Forward, Login, Ran, Session, Transport};
use towline_core::{Error, Result};

/// The longest path of a folder for control sockets. A socket's address holds 104 bytes on some
/// systems, and ssh adds a suffix to the name while it makes the socket.
pub const MAX_SOCKET_FOLDER_BYTES: usize = 104 - "/0123456789ab.0123456789abcdef\0".len();

/// How long a host may take to accept a connection, unless the caller says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a command may take to begin, unless the caller sets a limit.
const START_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct SshTransport(Arc<Host>);

#[derive(Debug)]
struct Host {
    name: String,
    ssh_config: Option<PathBuf>,
    sockets: PathBuf,
    known_hosts: PathBuf,
    program: OsString,
    /// How long the host may take to accept a connection.
    timeout: Duration,
    facts: Mutex<Option<Arc<HostFacts>>>,
    /// When a sign-in last needed a person who was not there; with the digest of the host's facts
    /// and the stderr of ssh.
    unattended: Mutex<Option<(Instant, String, String)>>,
    slots: Arc<Slots>,
}

/// The facts of a host, from `ssh -G` and the configuration.
#[derive(Debug)]
struct HostFacts {
    resolved: Resolved,
    client: Client,
    /// The name of the socket and of its lock.
    digest: String,
    /// The path of the socket, as an option of ssh takes it.
    socket: String,
    host_keys: Vec<String>,
}

impl SshTransport {
    /// `host` is what the user would give to `ssh`. `sockets` is a folder for control sockets, of
    /// at most [`MAX_SOCKET_FOLDER_BYTES`]; it is made with access for this user alone. New hosts
    /// are written to `known_hosts`.
    pub fn new(
        host: &str,
        ssh_config: Option<PathBuf>,
        sockets: impl Into<PathBuf>,
        known_hosts: impl Into<PathBuf>,
    ) -> Result<Self> {
        failure::check_host(host)?;
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let (name, ssh_config, sockets, known_hosts) = (
            host.to_owned(),
            ssh_config.map(absolute),
            absolute(sockets.into()),
            absolute(known_hosts.into()),
        );
        let length = sockets.as_os_str().len();
        if length > MAX_SOCKET_FOLDER_BYTES {
            let error = Error::config(format!(
                "{} is too long for the sockets of ssh: {length} bytes, where {MAX_SOCKET_FOLDER_BYTES} fit",
                sockets.display()
            ));
            return Err(error.hint("a shorter XDG_RUNTIME_DIR helps"));
        }
        resolved::option_path(&sockets)?;
        let (program, timeout) = ("ssh".into(), CONNECT_TIMEOUT);
        Ok(Self(Arc::new(Host {
            name,
            ssh_config,
            sockets,
            known_hosts,
            program,
            timeout,
            facts: Mutex::default(),
            unattended: Mutex::default(),
            slots: Arc::default(),
        })))
    }

    /// Uses another program than the `ssh` on the path.
    #[must_use]
    pub fn with_program(self, program: impl Into<OsString>) -> Self {
        self.with(program.into(), self.0.timeout)
    }

    /// Sets how long the host may take to accept a connection.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.with(self.0.program.clone(), timeout)
    }

    fn with(&self, program: OsString, timeout: Duration) -> Self {
        let Host {
            name,
            ssh_config,
            sockets,
            known_hosts,
            ..
        } = &*self.0;
        let (name, ssh_config, sockets, known_hosts) = (
            name.clone(),
            ssh_config.clone(),
            sockets.clone(),
            known_hosts.clone(),
        );
        Self(Arc::new(Host {
            name,
            ssh_config,
            sockets,
            known_hosts,
            program,
            timeout,
            facts: Mutex::default(),
            unattended: Mutex::default(),
            slots: Arc::default(),
        }))
    }
}

impl Host {
    fn config_args(&self) -> Vec<OsString> {
        self.ssh_config
            .iter()
            .flat_map(|path| ["-F".into(), path.into()])
            .collect()
    }

    fn failure<'a>(
        &'a self,
        resolved: &'a Resolved,
        home: Option<&'a Path>,
        may_ask: bool,
    ) -> failure::SignInFailure<'a> {
        let has_agent = std::env::var_os("SSH_AUTH_SOCK").is_some_and(|path| !path.is_empty());
        failure::SignInFailure {
            host: &self.name,
            ssh_config: self.ssh_config.as_deref(),
            resolved,
            home,
            has_agent,
            may_ask,
        }
    }

    /// The error for a connection that broke after a command may have begun.
    fn connection_cut(&self, stderr: &[u8]) -> Error {
        let stderr = String::from_utf8_lossy(stderr);
        Error::unreachable(format!(
            "the connection to `{}` was cut: {}",
            self.name,
            failure::main_line(&stderr)
        ))
        .hint("the next command connects again")
    }

    fn timed_out(&self, argv: &[&str], limit: Duration) -> Error {
        Error::unreachable(format!(
            "`{}` on `{}` did not end within {limit:?}; it may still run there",
            shown(argv),
            self.name
        ))
    }
}

impl Transport for SshTransport {
    fn place(&self) -> &str {
        &self.0.name
    }

    fn connect(&self, may_ask: bool) -> Result<()> {
        self.0.connect(may_ask)
    }

    fn run(&self, argv: &[&str], input: &[u8], limit: Duration) -> Result<Ran> {
        let mut call = self
            .0
            .start(argv, SessionLength::Short, deadline(limit))?
            .ok_or_else(|| self.0.timed_out(argv, limit))?;
        call.finish(input)?
            .ok_or_else(|| self.0.timed_out(argv, limit))
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Session>> {
        let call = self
            .0
            .start(argv, SessionLength::Long, Instant::now() + START_TIMEOUT)?;
        Ok(Box::new(
            call.ok_or_else(|| self.0.timed_out(argv, START_TIMEOUT))?,
        ))
    }

    fn put(&self, path: &str, bytes: &mut dyn Read, mode: u32) -> Result<()> {
        self.0.put(path, bytes, mode)
    }

    fn get(&self, path: &str, range: Range<u64>) -> Result<Option<Vec<u8>>> {
        self.0.get(path, &range)
    }

    /// Every connection to the port becomes a channel of the master of that moment. So a new master
    /// needs no new forward, and nothing is left behind when we are killed.
    fn forward(&self, host: &str, port: u16) -> Result<Box<dyn Forward>> {
        failure::check_host(host)?;
        self.0.ensure_master(false)?;
        let (own, host) = (self.0.clone(), host.to_owned());
        let dial = move || {
            own.ensure_master(false)?;
            own.dial(&host, port).map(Channel::into_remote_end)
        };
        Ok(Box::new(Relay::start(Box::new(dial))?))
    }

    /// Uses the same connection; an empty `argv` means the login shell. If the server takes no more
    /// sessions, this one signs in by itself.
    fn interactive(&self, argv: &[&str], terminal: bool) -> Result<Vec<OsString>> {
        let facts = self.0.facts(false)?;
        let mut command = vec![self.0.program.clone()];
        command.extend(self.0.config_args());
        if terminal {
            command.push("-t".into());
        }
        command.extend(
            [
                "-S",
                &facts.socket,
                "-o",
                "ControlMaster=no",
                "-o",
                "ClearAllForwardings=yes",
            ]
            .map(Into::into),
        );
        if facts.client.knows_remote_command() {
            command.extend(["-o", "RemoteCommand=none"].map(Into::into));
        }
        command.extend(
            facts
                .host_keys
                .iter()
                .flat_map(|option| ["-o".into(), option.into()]),
        );
        command.extend(["--", &self.0.name].map(Into::into));
        if !argv.is_empty() {
            check(argv)?;
            command.push(login_line(argv).into());
        }
        Ok(command)
    }

    fn proxy(&self, host: &str, port: u16) -> Result<Vec<OsString>> {
        failure::check_host(host)?;
        self.0.ensure_master(false)?;
        let mut command = self.0.through(&*self.0.facts(false)?);
        command.args(["-W", &format!("[{host}]:{port}"), "--", &self.0.name]);
        let program = std::iter::once(command.get_program());
        Ok(program
            .chain(command.get_args())
            .map(ToOwned::to_owned)
            .collect())
    }

    fn login(&self) -> Result<Login> {
        let facts = self.0.facts(false)?;
        Ok(Login {
            user: facts.resolved.user().to_owned(),
            keys: facts.resolved.keys.clone(),
        })
    }

    fn close(&self) {
        if let Ok(facts) = self.0.facts(false) {
            let _ = self.0.control(&facts, "exit");
        }
    }
}
