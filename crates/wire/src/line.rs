//! A connection to this program on another machine: one remote command, with frames on its stdin
//! and stdout. If the program is missing there, it is uploaded.

use crate::frame;
use crate::heartbeat::{Limited, Shared, SilenceLimit};
use crate::program::OwnProgram;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use towline_core::transport::{Session, Transport};
use towline_core::{Error, ErrorKind, Result};

/// Written before the first frame, because a login shell may print text first.
pub const GREETING: &[u8] = b"\0tow-line\0";

/// The first frame of the other side.
pub trait Hello: DeserializeOwned {
    /// BLAKE3 of the program that answers.
    fn program(&self) -> &str;
    /// Whether both sides speak the same protocol.
    fn is_understood(&self) -> bool;
    /// The other side sends heartbeats ([`crate::heartbeat::HeartbeatOutput`]): a connection
    /// without them is closed.
    const HAS_HEARTBEAT: bool = false;
}

/// Exit codes of a shell for a program that is missing or cannot run on this machine.
const NO_PROGRAM: [i32; 2] = [126, 127];
/// More bytes than this before the greeting are not the output of a login shell.
const MAX_CHATTER_BYTES: usize = 1 << 20;

pub struct Line {
    session: Shared,
    silence_limit: SilenceLimit,
    input: BufWriter<Limited<Box<dyn Write + Send>>>,
    output: BufReader<Limited<Box<dyn Read + Send>>>,
    place: String,
    is_broken: bool,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line({})", self.place)
    }
}

impl Line {
    /// Opens a connection to the program with these arguments. Uploads the program if it is missing
    /// or damaged.
    pub fn open<H: Hello>(
        transport: &dyn Transport,
        stage: &str,
        program: &OwnProgram,
        words: &[&str],
    ) -> Result<(Self, H)> {
        let is_ours = |hello: &H| hello.is_understood() && hello.program() == program.digest;
        let try_open = || {
            let opened = Self::try_open::<H>(transport, &program.place(stage), words)?;
            Ok::<_, Error>(opened.filter(|(_, hello)| is_ours(hello)))
        };
        if let Some(opened) = try_open()? {
            return Ok(opened);
        }
        let no_stage = |error| no_stage(error, transport.place(), stage);
        let is_brought = program.bring_packed(transport, stage).map_err(no_stage)?;
        if is_brought && let Some(opened) = try_open()? {
            return Ok(opened);
        }
        program.bring(transport, stage).map_err(no_stage)?;
        match try_open()? {
            Some(opened) => Ok(opened),
            None => Err(Error::unsupported(format!(
                "tow was copied to {} and cannot run there",
                transport.place()
            ))
            .hint(format!(
                "it is a program for Linux on x86-64; try `{} --version` there",
                program.place(stage)
            ))
            .hint("`stage` must be a folder from which programs may be run (not mounted noexec)")),
        }
    }

    /// `None` if the program is missing.
    fn try_open<H: Hello>(
        transport: &dyn Transport,
        program: &str,
        own: &[&str],
    ) -> Result<Option<(Self, H)>> {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests set crash points on the other machine too"
        )]
        let crash = |name: &str| {
            std::env::var(format!("TOW_FAR_{name}"))
                .ok()
                .map(|value| format!("TOW_{name}={value}"))
        };
        let crashes: Vec<String> = ["CRASH_AT", "CRASH_ONCE"]
            .into_iter()
            .filter_map(crash)
            .collect();
        let mut words: Vec<&str> = if crashes.is_empty() {
            Vec::new()
        } else {
            vec!["env"]
        };
        words.extend(crashes.iter().map(String::as_str));
        words.push(program);
        words.extend(own);
        let mut session = transport.spawn(&words)?;
        let (Some(input), Some(output)) = (session.input(), session.output()) else {
            return Err(Error::bug("a command without pipes"));
        };
        let session: Shared = Arc::new(Mutex::new(session));
        let silence_limit = if H::HAS_HEARTBEAT {
            SilenceLimit::with(&session)
        } else {
            SilenceLimit::default()
        };
        let mut output = BufReader::with_capacity(64 << 10, silence_limit.reading(output));
        let hello = greeting(&mut output).and_then(|()| frame::read_past_signs::<H>(&mut output));
        if let Ok(Some(hello)) = hello {
            let (input, place) = (
                BufWriter::with_capacity(64 << 10, silence_limit.writing(input)),
                transport.place().to_owned(),
            );
            return Ok(Some((
                Self {
                    session,
                    silence_limit,
                    input,
                    output,
                    place,
                    is_broken: false,
                },
                hello,
            )));
        }
        if silence_limit.is_over() {
            return Err(mute(transport.place()));
        }
        let mut session = held(&session);
        let code = session.wait()?;
        if NO_PROGRAM.contains(&code) {
            return Ok(None);
        }
        let said = session.said();
        let last = said
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it said nothing");
        Err(Error::unreachable(format!(
            "tow on {} exited with code {code}: {last}",
            transport.place()
        )))
    }

    /// The connection cannot be used any more.
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Marks the connection as broken, because answers will arrive that nobody reads.
    pub const fn give_up(&mut self) {
        self.is_broken = true;
    }

    /// Sends a message and the bytes that follow it.
    pub fn send<T: Serialize>(&mut self, message: &T, body: &[u8]) -> Result<()> {
        let sent = frame::write(&mut self.input, message)
            .and_then(|()| self.input.write_all(body))
            .and_then(|()| self.input.flush());
        sent.map_err(|error| self.broken(Some(error)))
    }

    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        match frame::read_past_signs(&mut self.output) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(self.broken(None)),
            Err(error) => Err(self.broken(Some(error))),
        }
    }

    /// The bytes that follow a message.
    pub fn bytes(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        match self.output.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(self.broken(Some(error))),
        }
    }

    fn broken(&mut self, error: Option<io::Error>) -> Error {
        self.is_broken = true;
        if self.silence_limit.is_over() {
            return mute(&self.place);
        }
        let said = held(&self.session).said();
        let last = said
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .map(|line| format!(": {}", line.trim()))
            .unwrap_or_default();
        let broken = Error::unreachable(format!("the connection to {} broke{last}", self.place));
        match error {
            Some(error) => broken.source_error(error),
            None => broken,
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        held(&self.session).hang_up();
    }
}

fn held(session: &Shared) -> MutexGuard<'_, Box<dyn Session>> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mute(place: &str) -> Error {
    Error::unreachable(format!("tow on {place} has stopped answering")).hint(
        "another one is started; the machine there may be overloaded, or its file system may hang",
    )
}

/// Skips the output of a login shell.
fn greeting(output: &mut impl Read) -> io::Result<()> {
    let mut seen = 0;
    let mut byte = [0];
    for _ in 0..MAX_CHATTER_BYTES {
        output.read_exact(&mut byte)?;
        seen = if byte[0] == GREETING[seen] {
            seen + 1
        } else {
            usize::from(byte[0] == GREETING[0])
        };
        if seen == GREETING.len() {
            return Ok(());
        }
    }
    Err(io::Error::other("its first bytes are not those of tow"))
}

fn no_stage(error: Error, place: &str, stage: &str) -> Error {
    if error.kind() == ErrorKind::Unreachable {
        return error;
    }
    let message = format!("cannot write to {stage} on {place}: {error}");
    Error::new(error.kind().as_refusal(), message)
        .hint("`stage` must be a folder there that all hosts share, with some 100 MB free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_prints_before_is_passed_over() {
        for before in [
            &b""[..],
            b"Welcome to the cluster!\n",
            b"\0tow-lin\0\0",
            b"\0\0\0",
        ] {
            let bytes = [before, GREETING, b"rest"].concat();
            let mut reader = &bytes[..];
            greeting(&mut reader).expect("greeted");
            assert_eq!(reader, b"rest");
        }
        assert!(greeting(&mut &b"nobody is there"[..]).is_err());
    }
}
