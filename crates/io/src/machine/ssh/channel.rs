//! Connections to ports over there, each a channel of the master; and the end of a master that
//! hangs.

use super::super::relay::Far;
use super::super::running::Running;
use super::master::NO_MASTER;
use super::{Host, Known, SshTransport, failure};
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

/// A plain connection to a port over there.
pub(crate) struct Channel {
    running: Running,
    from: Box<dyn Read + Send>,
    to: Box<dyn Write + Send>,
}

impl Channel {
    pub(crate) fn into_far(self) -> Far {
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
        Far {
            from: self.from,
            to: self.to,
            is_cut: Box::new(is_cut),
            end: Box::new(end),
        }
    }

    /// For who only asks: its two ways, and how to learn whether it was taken.
    pub(crate) fn into_parts(self) -> (Box<dyn Read + Send>, Box<dyn Write + Send>, Heard) {
        (self.from, self.to, Heard(self.running))
    }
}

/// A channel that was opened aloud. Dropped, it ends.
pub(crate) struct Heard(Running);

impl Heard {
    /// Whether the far side has taken the connection.
    pub(crate) fn is_taken(&self) -> bool {
        String::from_utf8_lossy(&self.0.said().so_far()).contains(ACCEPTED_SIGN)
    }

    /// Whether there was no master to speak to.
    pub(crate) fn has_no_master(&self) -> bool {
        let said = self.0.said().so_far();
        let text = String::from_utf8_lossy(&said);
        text.contains(NO_MASTER) || text.contains("read from master failed")
    }
}

impl Host {
    /// Over the master that is there; no other is made.
    pub(super) fn dial(&self, host: &str, port: u16) -> Result<Channel> {
        self.dial_with(host, port, &[])
    }

    fn dial_with(&self, host: &str, port: u16, options: &[&str]) -> Result<Channel> {
        let mut command = self.through(&*self.known(false)?);
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

    /// Why no connection to a port is had over there, in the server's words. A channel of the usual
    /// kind does not tell: the master keeps that to itself.
    fn why_not(&self, host: &str, port: u16, limit: Duration) -> Result<String> {
        let known = self.known(false)?;
        let door = self.sockets.join(format!(
            "{}.w{}",
            &known.digest[..6],
            std::process::id() % 10_000
        ));
        let _ = std::fs::remove_file(&door);
        let way = format!("{}:[{host}]:{port}", super::resolved::literal(&door)?);
        let mut command = self.ssh();
        command.args([
            "-F",
            "/dev/null",
            "-S",
            &known.socket,
            "-T",
            "-N",
            "-o",
            "LogLevel=INFO",
            "-O",
            "proxy",
            "-L",
            &way,
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
            let said = String::from_utf8_lossy(&running.said().so_far()).into_owned();
            if let Some((_, why)) = said
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

    /// The pids of masters on this socket, ours, with the moment each began.
    fn masters(known: &Known) -> Vec<(i32, u64)> {
        let is_one = |pid: &i32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let has = |wanted: &[u8]| words.split(|byte| *byte == 0).any(|word| word == wanted);
            has(b"-M") && has(known.socket.as_bytes())
        };
        process::all()
            .into_iter()
            .filter(|(pid, facts)| !facts.zombie && is_one(pid))
            .map(|(pid, facts)| (pid, facts.started))
            .collect()
    }

    /// The end of the master, also of one that hangs, and of what it reached its host through.
    fn end_master(&self, known: &Known) {
        let mut all = Self::masters(known);
        let below: Vec<i32> = all
            .iter()
            .flat_map(|(pid, _)| process::descendants(*pid))
            .collect();
        all.extend(
            below
                .into_iter()
                .filter_map(|pid| process::facts(pid).map(|facts| (pid, facts.started))),
        );
        let _ = self.control_within(known, "exit", MASTER_REPLY_TIMEOUT);
        for (pid, started) in all {
            // A number may have become another's.
            if process::facts(pid).is_some_and(|facts| facts.started == started) {
                process::signal(pid, Signal::KILL);
            }
        }
        let _ = std::fs::remove_file(self.sockets.join(&known.digest));
    }
}

impl SshTransport {
    pub(crate) fn dial(&self, host: &str, port: u16) -> Result<Channel> {
        self.0.dial(host, port)
    }

    /// As [`Self::dial`], and it says what becomes of it.
    pub(crate) fn dial_aloud(&self, host: &str, port: u16) -> Result<Channel> {
        self.0.dial_with(host, port, &["-v"])
    }

    pub(crate) fn why_not(&self, host: &str, port: u16, limit: Duration) -> Result<String> {
        self.0.why_not(host, port, limit)
    }

    /// Makes sure of a master, asking nobody. One that does not even answer here is put an end to.
    pub(crate) fn sign_in(&self) -> Result<()> {
        let known = self.0.known(false)?;
        match self.0.control_within(&known, "check", MASTER_REPLY_TIMEOUT) {
            Err(error) if error.kind() == ErrorKind::Unreachable => self.0.end_master(&known),
            answer => drop(answer?),
        }
        self.0.ensure_master(false).map(drop)
    }

    /// Whether anybody listens on the master's socket.
    pub(crate) fn has_master(&self) -> bool {
        self.0
            .known(false)
            .is_ok_and(|known| UnixStream::connect(self.0.sockets.join(&known.digest)).is_ok())
    }

    /// Whether the host begins a command over the master that is there.
    pub(crate) fn answers(&self, limit: Duration) -> bool {
        self.0.answers(Instant::now() + limit).unwrap_or(false)
    }

    /// The end of the shared connection, however it hangs.
    pub fn end(&self) {
        if let Ok(known) = self.0.known(false) {
            self.0.end_master(&known);
        }
    }

    /// Lets the shared connection go once nobody uses it.
    pub fn let_go(&self) {
        if let Ok(known) = self.0.known(false) {
            let _ = self.0.control_within(&known, "stop", MASTER_REPLY_TIMEOUT);
        }
    }
}
