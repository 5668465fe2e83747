//! The line to `tow __site` over there: one command on the shared connection, requests and replies
//! one at a time. Where the program is not there yet, it is brought.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use towline_core::transport::{Session, Transport};
use towline_core::{Error, ErrorKind, Result};
use towline_wire::frame;
use towline_wire::site::{SITE_GREETING, SITE_PROTOCOL, SITE_VERB, SiteHello, SiteReply, SiteRequest};

/// This program, as it is brought to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnProgram {
    pub path: PathBuf,
    /// BLAKE3 of its bytes, as hexadecimal digits.
    pub digest: String,
}

impl OwnProgram {
    /// Where it lies in a stage folder.
    pub fn place(&self, stage: &str) -> String {
        format!("{stage}/bin/tow-{}", self.digest)
    }
}

/// What a shell says of a program that is not there or is not for this machine.
const NO_PROGRAM: [i32; 2] = [126, 127];
/// Blobs that are sent before the first of them is answered; more than the other side leaves unanswered.
const WINDOW: usize = 8;
/// More than this before the greeting is not a login shell's chatter.
const MOST_CHATTER: usize = 1 << 20;

pub struct Link {
    session: Box<dyn Session>,
    input: BufWriter<Box<dyn Write + Send>>,
    output: BufReader<Box<dyn Read + Send>>,
    pub hello: SiteHello,
    /// Nothing more can be asked on it.
    pub(super) is_broken: bool,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({:?})", self.hello)
    }
}

impl Link {
    /// Opens it; the program is brought if it is not there, or not whole.
    pub fn open(transport: &dyn Transport, stage: &str, program: &OwnProgram) -> Result<Self> {
        if let Some(link) = Self::try_open(transport, stage, program)?
            && link.hello.program == program.digest
        {
            return Ok(link);
        }
        let unreadable = |error| Error::bug(format!("{} cannot be read", program.path.display())).source_error(error);
        let mut bytes = File::open(&program.path).map_err(unreadable)?;
        transport.put(&program.place(stage), &mut bytes, 0o700).map_err(|error| no_stage(error, transport.place(), stage))?;
        match Self::try_open(transport, stage, program)? {
            Some(link) if link.hello.program == program.digest => Ok(link),
            _ => Err(Error::refused(format!("tow was brought to {} and cannot run there", transport.place()))
                .hint(format!("it is a program for Linux on x86-64; try `{} --version` there", program.place(stage)))
                .hint("`stage` must be a folder from which programs may be run (not mounted noexec)")),
        }
    }

    /// `None`: the program is not there.
    fn try_open(transport: &dyn Transport, stage: &str, program: &OwnProgram) -> Result<Option<Self>> {
        let place = program.place(stage);
        // Tests kill what is over there too.
        let crash = |name: &str| std::env::var(format!("TOW_FAR_{name}")).ok().map(|value| format!("TOW_{name}={value}"));
        let crashes: Vec<String> = ["CRASH_AT", "CRASH_ONCE"].into_iter().filter_map(crash).collect();
        let mut words: Vec<&str> = if crashes.is_empty() { Vec::new() } else { vec!["env"] };
        words.extend(crashes.iter().map(String::as_str));
        words.extend([place.as_str(), SITE_VERB, stage]);
        let mut session = transport.spawn(&words)?;
        let (Some(input), Some(output)) = (session.input(), session.output()) else { return Err(Error::bug("a command without pipes")) };
        let mut output = BufReader::with_capacity(64 << 10, output);
        let hello = greeting(&mut output).and_then(|()| frame::read_exactly::<SiteHello>(&mut output));
        match hello {
            Ok(Some(hello)) if hello.protocol == SITE_PROTOCOL => {
                Ok(Some(Self { session, input: BufWriter::with_capacity(64 << 10, input), output, hello, is_broken: false }))
            }
            Ok(Some(_)) => Ok(None),
            Ok(None) | Err(_) => {
                let code = session.wait()?;
                if NO_PROGRAM.contains(&code) {
                    return Ok(None);
                }
                let said = session.said();
                let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
                Err(Error::unreachable(format!("tow on {} left with code {code}: {last}", transport.place())))
            }
        }
    }

    /// One question and its answer.
    pub fn ask(&mut self, request: &SiteRequest) -> Result<SiteReply> {
        let sent = frame::write(&mut self.input, request).and_then(|()| self.input.flush());
        let reply = sent.and_then(|()| frame::read_exactly::<SiteReply>(&mut self.output));
        match reply {
            Ok(Some(SiteReply::Refused(refusal))) => Err(refusal.into()),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(self.broken(None)),
            Err(error) => Err(self.broken(Some(error))),
        }
    }

    /// Many blobs, sent while the answers to those before are on their way.
    pub fn keep_all(&mut self, blobs: impl Iterator<Item = Result<(String, Vec<u8>)>>) -> Result<()> {
        let mut open = 0;
        for blob in blobs {
            let (blob, bytes) = blob?;
            let request = SiteRequest::Keep { blob, size: bytes.len() as u64 };
            let sent = frame::write(&mut self.input, &request).and_then(|()| self.input.write_all(&bytes)).and_then(|()| self.input.flush());
            if let Err(error) = sent {
                return Err(self.broken(Some(error)));
            }
            open += 1;
            if open >= WINDOW {
                self.done()?;
                open -= 1;
            }
        }
        // The other side answers the last of them when it is asked something else.
        if let Err(error) = frame::write(&mut self.input, &SiteRequest::Missing { blobs: Vec::new() }).and_then(|()| self.input.flush()) {
            return Err(self.broken(Some(error)));
        }
        for _ in 0..open {
            self.done()?;
        }
        match frame::read_exactly::<SiteReply>(&mut self.output) {
            Ok(Some(SiteReply::Missing { .. })) => Ok(()),
            Ok(_) => Err(self.broken(None)),
            Err(error) => Err(self.broken(Some(error))),
        }
    }

    fn done(&mut self) -> Result<()> {
        match frame::read_exactly::<SiteReply>(&mut self.output) {
            Ok(Some(SiteReply::Done)) => Ok(()),
            Ok(Some(SiteReply::Refused(refusal))) => {
                // What was sent behind it is answered too, and nobody will read that.
                self.is_broken = true;
                Err(refusal.into())
            }
            Ok(_) => Err(self.broken(None)),
            Err(error) => Err(self.broken(Some(error))),
        }
    }

    /// The bytes that follow a reply.
    pub fn bytes(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        match self.output.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(self.broken(Some(error))),
        }
    }

    fn broken(&mut self, error: Option<io::Error>) -> Error {
        self.is_broken = true;
        let said = self.session.said();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).map(|line| format!(": {}", line.trim())).unwrap_or_default();
        let broken = Error::unreachable(format!("the connection to {} broke{last}", self.hello.host));
        match error {
            Some(error) => broken.source_error(error),
            None => broken,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.session.hang_up();
    }
}

/// Passes over whatever a login shell prints.
fn greeting(output: &mut impl Read) -> io::Result<()> {
    let mut seen = 0;
    let mut byte = [0];
    for _ in 0..MOST_CHATTER {
        output.read_exact(&mut byte)?;
        seen = if byte[0] == SITE_GREETING[seen] { seen + 1 } else { usize::from(byte[0] == SITE_GREETING[0]) };
        if seen == SITE_GREETING.len() {
            return Ok(());
        }
    }
    Err(io::Error::other("it does not greet"))
}

fn no_stage(error: Error, place: &str, stage: &str) -> Error {
    if error.kind() == ErrorKind::Unreachable {
        return error;
    }
    Error::refused(format!("nothing can be put into {stage} on {place}: {error}"))
        .hint("`stage` names a folder there that all hosts share, with some 100 MB to spare")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_prints_before_is_passed_over() {
        for before in [&b""[..], b"Welcome to the cluster!\n", b"\0tow-sit\0\0", b"\0\0\0"] {
            let bytes = [before, SITE_GREETING, b"rest"].concat();
            let mut reader = &bytes[..];
            greeting(&mut reader).expect("greeted");
            assert_eq!(reader, b"rest");
        }
        assert!(greeting(&mut &b"nobody is there"[..]).is_err());
    }
}
