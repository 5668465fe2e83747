//! One command over there: how it begins, and what its end means.

use super::super::running::Running;
use super::super::{check, quote, shown};
use super::marks::{Marks, past};
use super::master::{NO_MASTER, unseen};
use super::slots::{Slot, Stay};
use super::{Host, failure};
use std::io::{BufReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use towline_core::transport::{Ran, Session};
use towline_core::{Error, Result};

/// Says when the command begins, so that nothing a profile printed counts as its own; and after
/// a 255, so that it is not taken for one of ssh's own. The two halves of the mark are words, so
/// that a shell that prints its command does not print the mark. No variable is set before the
/// command, and a program of the name of a shell's own command is still meant.
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
    /// Later than was asked for by as long as signing in took.
    deadline: Instant,
    _slot: Slot,
}

enum Begun {
    Yes(Running),
    /// For certain not.
    NoMaster,
    Full,
    /// Nobody knows.
    Cut(Vec<u8>),
    /// The shell over there ended without a word of ours.
    Mute(Vec<u8>),
    Late,
}

impl Host {
    /// Begins words, with a new master where there is none. `None` when they have not begun until
    /// the deadline.
    pub(super) fn start(
        self: &Arc<Self>,
        words: &[&str],
        stay: Stay,
        mut deadline: Instant,
    ) -> Result<Option<Call>> {
        check(words)?;
        let mut is_new = false;
        loop {
            let Some(slot) = self.slots.take(stay, deadline) else {
                return Err(self.crowded());
            };
            let marks = Marks::new()?;
            match self.begin(words, &marks, deadline)? {
                Begun::Yes(running) => {
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
                    return Err(self.crowded());
                }
                Begun::Full => {
                    drop(slot);
                    self.slots.pause(FULL_RETRY_PAUSE);
                }
                Begun::Cut(said) => return Err(self.cut(&said)),
                Begun::Mute(said) => {
                    let error = Error::refused(format!(
                        "`{}` runs no commands: {}",
                        self.name,
                        failure::main_line(&String::from_utf8_lossy(&said))
                    ));
                    return Err(
                        error.hint("is it a host to log in to? its shell ended before the command")
                    );
                }
                Begun::Late => return Ok(None),
            }
        }
    }

    /// Whether the host answers over the master that is there; no other is made.
    pub(super) fn answers(&self, deadline: Instant) -> Result<bool> {
        match self.begin(&["true"], &Marks::new()?, deadline)? {
            // Full is an answer of the server.
            Begun::Yes(_) | Begun::Full | Begun::Mute(_) => Ok(true),
            Begun::NoMaster | Begun::Cut(_) => Ok(false),
            Begun::Late => Err(Error::unreachable(format!(
                "`{}` is connected but does not begin a command",
                self.name
            ))
            .hint("its shell or its file system may hang; try later")),
        }
    }

    fn crowded(&self) -> Error {
        Error::unreachable(format!(
            "`{}` takes no more sessions on this connection",
            self.name
        ))
        .hint("others of yours use it: wait for them to end")
    }

    fn begin(&self, words: &[&str], marks: &Marks, deadline: Instant) -> Result<Begun> {
        let all: Vec<&str> = [
            "/bin/sh",
            "-c",
            BEGIN_SCRIPT,
            "tow",
            &marks.first,
            &marks.second,
        ]
        .iter()
        .chain(words)
        .copied()
        .collect();
        let line = quote::login_line(&all);
        if line.len() > MAX_COMMAND_BYTES {
            return Err(Error::refused(format!(
                "`{}` is too long for one command: {} bytes",
                shown(words),
                line.len()
            ))
            .hint("give what is long by a file"));
        }
        let known = self.known(false)?;
        let mut running = Running::start(self.through(&known).args(["--", &self.name, &line]))
            .map_err(|error| failure::not_started(&self.program, error))?;
        let Some(output) = running.output() else {
            return Err(Error::bug("a program has no pipes"));
        };
        let (sender, found) = channel();
        let mark = marks.begin();
        std::thread::Builder::new()
            .spawn(move || sender.send(past(BufReader::new(output), &mark)))
            .map_err(unseen)?;
        match found.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(output)) => {
                running.set_output(Box::new(output));
                Ok(Begun::Yes(running))
            }
            Ok(Err(noise)) => {
                let Some(code) = running.wait(Some(deadline)).map_err(unseen)? else {
                    return Ok(Begun::Late);
                };
                let said = running.said().at_last();
                Ok(if code == 255 || running.is_signalled() {
                    refusal(said)
                } else {
                    Begun::Mute(if said.is_empty() { noise } else { said })
                })
            }
            Err(RecvTimeoutError::Timeout) => Ok(Begun::Late),
            Err(RecvTimeoutError::Disconnected) => Err(Error::bug("a thread broke")),
        }
    }
}

/// What an `ssh` means that ended before the command began.
fn refusal(said: Vec<u8>) -> Begun {
    let text = String::from_utf8_lossy(&said);
    if !text.contains(NO_MASTER) || text.contains("read from master failed") {
        return Begun::Cut(said);
    }
    if text.contains("session request failed") || text.contains("open refused by peer") {
        Begun::Full
    } else {
        Begun::NoMaster
    }
}

impl Call {
    /// To its end; `None` when the deadline came first.
    pub(super) fn finish(&mut self, input: &[u8]) -> Result<Option<Ran>> {
        let Some(mut ran) = self.running.finish(input, self.deadline).map_err(unseen)? else {
            return Ok(None);
        };
        ran.err = self.own(ran.code, ran.err)?;
        Ok(Some(ran))
    }

    /// Its code and what it said, when it has ended.
    pub(super) fn end(&mut self) -> Result<(i32, Vec<u8>)> {
        let code = self.running.wait(None).map_err(unseen)?.unwrap_or_default();
        if self.hung_up {
            return Ok((code, self.marks.own(self.running.said().so_far()).0));
        }
        Ok((code, self.own(code, self.running.said().at_last())?))
    }

    /// What it said of itself. ssh ends with 255 when it is cut off, and a command may too: that
    /// one leaves its mark.
    fn own(&self, code: i32, said: Vec<u8>) -> Result<Vec<u8>> {
        let (said, is_own) = self.marks.own(said);
        if self.running.is_signalled() || (code == 255 && !is_own) {
            Err(self.host.cut(&said))
        } else {
            Ok(said)
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
        String::from_utf8_lossy(&self.marks.own(self.running.said().so_far()).0).into_owned()
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
    fn what_did_not_begin_is_told_from_what_may_have() {
        assert!(matches!(
            refusal(format!("{NO_MASTER}\nkex_exchange_identification: closed").into()),
            Begun::NoMaster
        ));
        let full = format!(
            "mux_client_request_session: session request failed: Session open refused by \
                peer\n{NO_MASTER}\n"
        );
        assert!(matches!(refusal(full.into()), Begun::Full));
        assert!(matches!(
            refusal(
                format!(
                    "mux_client_request_session: read from master failed: \
            Broken pipe\n{NO_MASTER}\n"
                )
                .into()
            ),
            Begun::Cut(_)
        ));
        assert!(matches!(refusal(Vec::new()), Begun::Cut(_)));
    }
}
