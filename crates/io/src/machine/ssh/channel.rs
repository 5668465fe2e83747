//! Connections to ports on the far host, each a channel of the master; and how a master that hangs
//! is ended.

use super::super::relay::RemoteEnd;
use super::super::running::Running;
use super::master::NO_MASTER;
use super::{Host, HostFacts, SshTransport, failure};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use towline_core::{Error, ErrorKind, Result};
use towline_host::process;

/// `ssh -v` prints these words once the far side has accepted the connection.
const ACCEPTED_SIGN: &str = "master session id";
/// How long an `ssh` whose output has ended may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a master may take to answer on its own socket.
const MASTER_REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// A plain connection to a port on the far host.
pub(crate) struct Channel {
    running: Running,
    from: Box<dyn Read + Send>,
    to: Box<dyn Write + Send>,
}

impl Channel {
    pub(crate) fn into_remote_end(self) -> RemoteEnd {
        let running = Arc::new(Mutex::new(Some(self.running)));
        let seen = running.clone();
        let is_cut = move || match &mut *seen.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(running) => !matches!(
                running.wait(Some(Instant::now() + EXIT_TIMEOUT)),
                Ok(None | Some(0))
            ),
            None => false,
        };
        let end = move || {
            drop(
                running
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        };
        RemoteEnd {
            from: self.from,
            to: self.to,
            is_cut: Box::new(is_cut),
            end: Box::new(end),
        }
    }

    /// Its two directions, and how to learn whether it was accepted. For a probe.
    pub(crate) fn into_parts(
        self,
    ) -> (Box<dyn Read + Send>, Box<dyn Write + Send>, VerboseChannel) {
        (self.from, self.to, VerboseChannel(self.running))
    }
}

/// A channel of an `ssh -v`. It is closed when it is dropped.
pub(crate) struct VerboseChannel(Running);

impl VerboseChannel {
    /// Whether the far side has accepted the connection.
    pub(crate) fn is_accepted(&self) -> bool {
        String::from_utf8_lossy(&self.0.stderr().so_far()).contains(ACCEPTED_SIGN)
    }

    /// Whether there was no master.
    pub(crate) fn has_no_master(&self) -> bool {
        let stderr = self.0.stderr().so_far();
        let text = String::from_utf8_lossy(&stderr);
        text.contains(NO_MASTER) || text.contains("read from master failed")
    }
}

impl Host {
    /// Opens a channel of the current master; no new master is made.
    pub(super) fn dial(&self, host: &str, port: u16) -> Result<Channel> {
        self.dial_with(host, port, &[])
    }

    fn dial_with(&self, host: &str, port: u16, options: &[&str]) -> Result<Channel> {
        let mut command = self.through(&*self.facts(false)?);
        command
            .args(options)
            .args(["-W", &format!("[{host}]:{port}"), "--", &self.name]);
        let mut running = Running::start(&mut command)
            .map_err(|error| failure::not_started(&self.program, error))?;
        let (Some(from), Some(to)) = (running.output(), running.input()) else {
            return Err(Error::bug("a program has no pipes"));
        };
        Ok(Channel { running, from, to })
    }

    /// Why the server cannot connect to a port, in its own words. A plain channel does not learn
    /// the reason, because the master keeps it to itself.
    fn refusal_reason(&self, host: &str, port: u16, limit: Duration) -> Result<String> {
        let facts = self.facts(false)?;
        let door = self.sockets.join(format!(
            "{}.w{}",
            &facts.digest[..6],
            std::process::id() % 10_000
        ));
        let _ = std::fs::remove_file(&door);
        let forwarding = format!("{}:[{host}]:{port}", super::resolved::option_path(&door)?);
        let mut command = self.ssh();
        command.args([
            "-F",
            "/dev/null",
            "-S",
            &facts.socket,
            "-T",
            "-N",
            "-o",
            "LogLevel=INFO",
            "-O",
            "proxy",
            "-L",
            &forwarding,
            "--",
            &self.name,
        ]);
        let running = Running::start(&mut command)
            .map_err(|error| failure::not_started(&self.program, error))?;
        let deadline = Instant::now() + limit;
        let mut asked = None;
        while Instant::now() < deadline {
            if asked.is_none() {
                asked = UnixStream::connect(&door).ok();
            }
            let stderr = String::from_utf8_lossy(&running.stderr().so_far()).into_owned();
            if let Some((_, why)) = stderr
                .lines()
                .find_map(|line| line.split_once("open failed: "))
            {
                let _ = std::fs::remove_file(&door);
                return Ok(why.trim().to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = std::fs::remove_file(&door);
        Ok(String::new())
    }

    /// The pids of our masters on this socket, with the start time of each.
    fn masters(facts: &HostFacts) -> Vec<(i32, u64)> {
        let is_one = |pid: &i32| {
            let argv = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let has = |wanted: &[u8]| argv.split(|byte| *byte == 0).any(|word| word == wanted);
            has(b"-M") && has(facts.socket.as_bytes())
        };
        process::all()
            .into_iter()
            .filter(|(pid, facts)| !facts.zombie && is_one(pid))
            .map(|(pid, facts)| (pid, facts.started))
            .collect()
    }

    /// Ends the master, even one that hangs, and the programs through which it reached its host.
    fn end_master(&self, facts: &HostFacts) {
        let mut all = Self::masters(facts);
        let below: Vec<i32> = all
            .iter()
            .flat_map(|(pid, _)| process::descendants(*pid))
            .collect();
        all.extend(
            below
                .into_iter()
                .filter_map(|pid| process::facts(pid).map(|facts| (pid, facts.started))),
        );
        let _ = self.control_within(facts, "exit", MASTER_REPLY_TIMEOUT);
        for (pid, started) in all {
            // The pid may belong to another process by now.
            if process::facts(pid).is_some_and(|facts| facts.started == started) {
                process::signal(pid, Signal::KILL);
            }
        }
        let _ = std::fs::remove_file(self.sockets.join(&facts.digest));
    }
}

impl SshTransport {
    pub(crate) fn dial(&self, host: &str, port: u16) -> Result<Channel> {
        self.0.dial(host, port)
    }

    /// As [`Self::dial`], and the channel reports its state.
    pub(crate) fn dial_verbose(&self, host: &str, port: u16) -> Result<Channel> {
        self.0.dial_with(host, port, &["-v"])
    }

    pub(crate) fn refusal_reason(&self, host: &str, port: u16, limit: Duration) -> Result<String> {
        self.0.refusal_reason(host, port, limit)
    }

    /// Makes sure of a master without asking the user. A master that does not answer on its own
    /// socket is ended first.
    pub(crate) fn sign_in(&self) -> Result<()> {
        let facts = self.0.facts(false)?;
        match self.0.control_within(&facts, "check", MASTER_REPLY_TIMEOUT) {
            Err(error) if error.kind() == ErrorKind::Unreachable => self.0.end_master(&facts),
            answer => drop(answer?),
        }
        self.0.ensure_master(false).map(drop)
    }

    /// Whether a process listens on the master's socket.
    pub(crate) fn has_master(&self) -> bool {
        self.0
            .facts(false)
            .is_ok_and(|facts| UnixStream::connect(self.0.sockets.join(&facts.digest)).is_ok())
    }

    /// Whether the host begins a command over the current master.
    pub(crate) fn answers(&self, limit: Duration) -> bool {
        self.0.answers(Instant::now() + limit).unwrap_or(false)
    }

    /// Ends the shared connection, even one that hangs.
    pub fn end(&self) {
        if let Ok(facts) = self.0.facts(false) {
            self.0.end_master(&facts);
        }
    }

    /// Ends the shared connection once nobody uses it.
    pub fn let_go(&self) {
        if let Ok(facts) = self.0.facts(false) {
            let _ = self.0.control_within(&facts, "stop", MASTER_REPLY_TIMEOUT);
        }
    }
}
