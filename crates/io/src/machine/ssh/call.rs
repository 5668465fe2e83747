//! One command on the far host: how it begins, and what its end means.

use super::super::login_shell::login_line;
use super::super::running::Running;
use super::super::{check, shown};
use super::marks::{Marks, skip_to_mark};
use super::master::{NO_MASTER, end_unseen};
use super::slots::{SessionLength, Slot};
use super::{Host, failure};
use std::io::{BufReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use towline_core::transport::{Ran, Session};
use towline_core::{Error, Result};

/// Prints a mark when the command begins, so that the output of a profile does not count as the
/// command's. It prints another mark after exit code 255, because ssh uses that code for its own
/// failures. The mark comes as two arguments, so that a shell that echoes its command does not
/// print it. No variable is set before the command, and `exec` runs a program even if the shell has
/// a command of that name.
const BEGIN_SCRIPT: &str = r#"cd 2>/dev/null; printf %s%s "$1" "$2" >&2; printf %s%s "$1" "$2"; (shift 2; exec "$@"); e=$?; [ $e -eq 255 ] && printf %s%s "$2" "$1" >&2; exit $e"#;

/// Linux limits one argument of a program to this length, and the whole command is one argument.
const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// Pause before a server that takes no more sessions is asked again.
const FULL_RETRY_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Call {
    running: Running,
    host: Arc<Host>,
    marks: Marks,
    hung_up: bool,
    /// The caller's deadline, extended by the time that signing in took.
    deadline: Instant,
    _slot: Slot,
}

enum Begun {
    Started(Running),
    /// There is no master, so the command has certainly not begun.
    NoMaster,
    /// The server takes no more sessions.
    Full,
    /// The connection was cut, and the command may have begun.
    Cut(Vec<u8>),
    /// The far shell ended without printing the mark.
    Silent(Vec<u8>),
    TimedOut,
}

impl Host {
    /// Starts a command, with a new master if there is none. `None` if it has not begun by the
    /// deadline.
    pub(super) fn start(
        self: &Arc<Self>,
        argv: &[&str],
        length: SessionLength,
        mut deadline: Instant,
    ) -> Result<Option<Call>> {
        check(argv)?;
        let mut is_new = false;
        loop {
            let Some(slot) = self.slots.acquire(length, deadline) else {
                return Err(self.too_many_sessions());
            };
            let marks = Marks::new()?;
            match self.begin(argv, &marks, deadline)? {
                Begun::Started(running) => {
                    return Ok(Some(Call {
                        running,
                        host: self.clone(),
                        marks,
                        hung_up: false,
                        deadline,
                        _slot: slot,
                    }));
                }
                Begun::NoMaster if !is_new => {
                    drop(slot);
                    let begun = Instant::now();
                    self.ensure_master(false)?;
                    deadline += begun.elapsed();
                    is_new = true;
                }
                Begun::NoMaster => {
                    return Err(Error::unreachable(format!(
                        "the connection to `{}` does not last",
                        self.name
                    )));
                }
                Begun::Full if Instant::now() + FULL_RETRY_PAUSE > deadline => {
                    return Err(self.too_many_sessions());
                }
                Begun::Full => {
                    drop(slot);
                    self.slots.wait_for_free(FULL_RETRY_PAUSE);
                }
                Begun::Cut(stderr) => return Err(self.connection_cut(&stderr)),
                Begun::Silent(stderr) => {
                    let error = Error::refused(format!(
                        "`{}` runs no commands: {}",
                        self.name,
                        failure::main_line(&String::from_utf8_lossy(&stderr))
                    ));
                    return Err(
                        error.hint("is it a host to log in to? its shell ended before the command")
                    );
                }
                Begun::TimedOut => return Ok(None),
            }
        }
    }

    /// Whether the host answers over the current master; no new one is made.
    pub(super) fn answers(&self, deadline: Instant) -> Result<bool> {
        match self.begin(&["true"], &Marks::new()?, deadline)? {
            // A full server has answered.
            Begun::Started(_) | Begun::Full | Begun::Silent(_) => Ok(true),
            Begun::NoMaster | Begun::Cut(_) => Ok(false),
            Begun::TimedOut => Err(Error::unreachable(format!(
                "`{}` is connected but does not begin a command",
                self.name
            ))
            .hint("its shell or its file system may hang; try later")),
        }
    }

    fn too_many_sessions(&self) -> Error {
        Error::unreachable(format!(
            "`{}` takes no more sessions on this connection",
            self.name
        ))
        .hint("others of yours use it: wait for them to end")
    }

    fn begin(&self, argv: &[&str], marks: &Marks, deadline: Instant) -> Result<Begun> {
        let all: Vec<&str> = [
            "/bin/sh",
            "-c",
            BEGIN_SCRIPT,
            "tow",
            &marks.first,
            &marks.second,
        ]
        .iter()
        .chain(argv)
        .copied()
        .collect();
        let line = login_line(&all);
        if line.len() > MAX_COMMAND_BYTES {
            return Err(Error::too_large(format!(
                "`{}` is too long for one command: {} bytes",
                shown(argv),
                line.len()
            ))
            .hint("give what is long by a file"));
        }
        let facts = self.facts(false)?;
        let mut running = Running::start(self.through(&facts).args(["--", &self.name, &line]))
            .map_err(|error| failure::not_started(&self.program, error))?;
        let Some(output) = running.output() else {
            return Err(Error::bug("a program has no pipes"));
        };
        let (sender, found) = channel();
        let mark = marks.begin();
        std::thread::Builder::new()
            .spawn(move || sender.send(skip_to_mark(BufReader::new(output), &mark)))
            .map_err(end_unseen)?;
        match found.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(output)) => {
                running.set_output(Box::new(output));
                Ok(Begun::Started(running))
            }
            Ok(Err(noise)) => {
                let Some(code) = running.wait(Some(deadline)).map_err(end_unseen)? else {
                    return Ok(Begun::TimedOut);
                };
                let stderr = running.stderr().wait_for_all();
                Ok(if code == 255 || running.is_signalled() {
                    classify_refusal(stderr)
                } else {
                    Begun::Silent(if stderr.is_empty() { noise } else { stderr })
                })
            }
            Err(RecvTimeoutError::Timeout) => Ok(Begun::TimedOut),
            Err(RecvTimeoutError::Disconnected) => Err(Error::bug("a thread broke")),
        }
    }
}

/// Why an `ssh` ended before the command began.
fn classify_refusal(stderr: Vec<u8>) -> Begun {
    let text = String::from_utf8_lossy(&stderr);
    if !text.contains(NO_MASTER) || text.contains("read from master failed") {
        return Begun::Cut(stderr);
    }
    if text.contains("session request failed") || text.contains("open refused by peer") {
        Begun::Full
    } else {
        Begun::NoMaster
    }
}

impl Call {
    /// Waits for its end; `None` if the deadline came first.
    pub(super) fn finish(&mut self, input: &[u8]) -> Result<Option<Ran>> {
        let Some(mut ran) = self
            .running
            .finish(input, self.deadline)
            .map_err(end_unseen)?
        else {
            return Ok(None);
        };
        ran.err = self.own_stderr(ran.code, ran.err)?;
        Ok(Some(ran))
    }

    /// Waits for its end; its exit code and its stderr.
    pub(super) fn end(&mut self) -> Result<(i32, Vec<u8>)> {
        let code = self
            .running
            .wait(None)
            .map_err(end_unseen)?
            .unwrap_or_default();
        if self.hung_up {
            return Ok((
                code,
                self.marks.own_stderr(self.running.stderr().so_far()).0,
            ));
        }
        Ok((
            code,
            self.own_stderr(code, self.running.stderr().wait_for_all())?,
        ))
    }

    /// The stderr of the command itself. ssh exits with 255 when it is cut off; a command that
    /// exits with 255 has printed its mark.
    fn own_stderr(&self, code: i32, stderr: Vec<u8>) -> Result<Vec<u8>> {
        let (stderr, is_own) = self.marks.own_stderr(stderr);
        if self.running.is_signalled() || (code == 255 && !is_own) {
            Err(self.host.connection_cut(&stderr))
        } else {
            Ok(stderr)
        }
    }
}

impl Session for Call {
    fn input(&mut self) -> Option<Box<dyn Write + Send>> {
        self.running.input()
    }
    fn output(&mut self) -> Option<Box<dyn Read + Send>> {
        self.running.output()
    }
    fn said(&self) -> String {
        String::from_utf8_lossy(&self.marks.own_stderr(self.running.stderr().so_far()).0)
            .into_owned()
    }
    fn wait(&mut self) -> Result<i32> {
        self.end().map(|(code, _)| code)
    }
    fn hang_up(&mut self) {
        self.hung_up = true;
        self.running.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_did_not_begin_differs_from_one_that_may_have() {
        assert!(matches!(
            classify_refusal(format!("{NO_MASTER}\nkex_exchange_identification: closed").into()),
            Begun::NoMaster
        ));
        let full = format!(
            "mux_client_request_session: session request failed: Session open refused by \
                peer\n{NO_MASTER}\n"
        );
        assert!(matches!(classify_refusal(full.into()), Begun::Full));
        assert!(matches!(
            classify_refusal(
                format!(
                    "mux_client_request_session: read from master failed: \
            Broken pipe\n{NO_MASTER}\n"
                )
                .into()
            ),
            Begun::Cut(_)
        ));
        assert!(matches!(classify_refusal(Vec::new()), Begun::Cut(_)));
    }
}
