//! Does a verb in a process of its own: this program, with `--json`. Its answer, its messages and
//! its progress come back as replies. If the caller no longer wants the answer, the process is
//! asked to end.

use super::words::Words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};
use towline_api::replies::Caller;
use towline_api::session::Opened;
use towline_core::{Error, ErrorKind, Result};
use towline_wire::api::envelope::{ProgressLine, Reply};
use towline_wire::api::files::SendHead;

/// How long a process may take to end after it was asked to. Then it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// A process that says more in one line is not ours.
const MAX_LINE_BYTES: usize = 256 << 20;

/// Runs this program with these words, and returns the last document that it prints.
pub(super) fn run(words: &Words, agent: Option<&str>, caller: &mut dyn Caller) -> Result<Value> {
    let mut child = towline_host::own::start(&words.words, agent)
        .map_err(|error| Error::from_io("this program cannot be started again", error))?;
    let stdin = child.stdin.take();
    let input = words.input.clone().unwrap_or_default();
    let outcome = std::thread::scope(|scope| {
        // More than a pipe holds would block us, who have to read its output meanwhile. If no
        // thread can be made, the process reads an empty input and says what it misses.
        let writer = std::thread::Builder::new().spawn_scoped(scope, move || {
            // A process that does not read its input has its reasons; it tells them.
            stdin.map(|mut stdin| stdin.write_all(input.as_bytes()))
        });
        let outcome = Listener::new(&mut child, caller).listen();
        drop(writer);
        outcome
    });
    let status = child.wait();
    let heard = outcome?;
    if let Some(failure) = heard.failure {
        return Err(failure.into());
    }
    match (heard.last, status) {
        (Some(answer), _) => Ok(answer),
        (None, Ok(status)) if status.success() => Ok(Value::Null),
        (None, Ok(status)) => Err(Error::bug(format!(
            "`tow` ended with {status} and no answer"
        ))),
        (None, Err(error)) => Err(Error::bug("`tow` was lost").source_error(error)),
    }
}

/// Starts this program to send bytes. It ends when nobody reads them any more.
pub(super) fn open(words: &Words, agent: Option<&str>) -> Result<Opened> {
    let mut child = towline_host::own::start(&words.words, agent)
        .map_err(|error| Error::from_io("this program cannot be started again", error))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), &words.input) {
        // A question fits into a pipe.
        let _ = stdin.write_all(input.as_bytes());
    }
    let stdout = child.stdout.take().ok_or_else(|| Error::bug("no stdout"))?;
    let mut content = BufReader::new(Sent { stdout, child });
    let mut line = String::new();
    let mut head = (&mut content).take(MAX_HEAD_BYTES);
    head.read_line(&mut line).map_err(broken)?;
    if let Ok(head) = serde_json::from_str::<SendHead>(&line) {
        return Ok(Opened {
            name: head.name,
            bytes: head.bytes,
            content: Box::new(content),
        });
    }
    let mut said = String::new();
    if let Some(mut stderr) = content.get_mut().child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    let failure = said
        .lines()
        .find_map(|line| serde_json::from_str::<ToldFailure>(line).ok());
    Err(failure.map_or_else(|| Error::bug("`tow` sent no file"), Error::from))
}

const MAX_HEAD_BYTES: u64 = 64 << 10;

/// The bytes of a process, which ends with them.
struct Sent {
    stdout: ChildStdout,
    child: Child,
}

impl Read for Sent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stdout.read(buffer)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        // It removes what it has put down.
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.child.wait();
    }
}

/// An error that the process printed.
#[derive(Debug, Deserialize)]
struct ToldFailure {
    error: ErrorKind,
    message: String,
    #[serde(default)]
    hints: Vec<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl From<ToldFailure> for Error {
    fn from(failure: ToldFailure) -> Self {
        let kind = failure.error.with_refusal(failure.refusal.as_deref());
        let error = Self::new(kind, failure.message);
        failure.hints.into_iter().fold(error, Self::hint)
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum StatusLine {
    Progress(ProgressLine),
    Failure(ToldFailure),
}

#[derive(Default)]
struct Heard {
    last: Option<Value>,
    failure: Option<ToldFailure>,
}

struct Listener<'c> {
    child: &'c mut Child,
    caller: &'c mut dyn Caller,
    heard: Heard,
    asked_to_end: Option<Instant>,
}

impl<'c> Listener<'c> {
    fn new(child: &'c mut Child, caller: &'c mut dyn Caller) -> Self {
        Self {
            child,
            caller,
            heard: Heard::default(),
            asked_to_end: None,
        }
    }

    /// Reads both streams until they end.
    fn listen(mut self) -> Result<Heard> {
        let (mut stdout, mut stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let (mut answers, mut messages) = (Lines::default(), Lines::default());
        while stdout.is_some() || stderr.is_some() {
            let (is_cancelled, has_answer, has_message) = {
                let cancel = self.caller.cancel().descriptor();
                ready(
                    self.asked_to_end.is_none().then_some(cancel),
                    stdout.as_ref(),
                    stderr.as_ref(),
                )
            };
            if is_cancelled {
                self.ask_to_end();
            }
            if self
                .asked_to_end
                .is_some_and(|asked| asked.elapsed() > GRACE)
            {
                let _ = self.child.kill();
            }
            if has_answer && !answers.read(&mut stdout).map_err(broken)? {
                stdout = None;
            }
            if has_message && !messages.read(&mut stderr).map_err(broken)? {
                stderr = None;
            }
            while let Some(line) = answers.next(stdout.is_none()) {
                self.answer(&line)?;
            }
            while let Some(line) = messages.next(stderr.is_none()) {
                self.message(&line);
            }
        }
        if self.asked_to_end.is_some() {
            return Err(Error::new(ErrorKind::Timeout, "the call was cancelled"));
        }
        Ok(self.heard)
    }

    fn ask_to_end(&mut self) {
        self.asked_to_end.get_or_insert_with(Instant::now);
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn answer(&mut self, line: &[u8]) -> Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let value = serde_json::from_slice(line)
            .map_err(|error| Error::bug("`tow` printed no JSON").source_error(error))?;
        if let Some(part) = self.heard.last.replace(value) {
            self.caller.reply(Reply::Part(part));
        }
        Ok(())
    }

    fn message(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        match serde_json::from_str(text) {
            Ok(StatusLine::Progress(line)) => {
                self.caller.reply(Reply::Progress(line.progress));
            }
            Ok(StatusLine::Failure(failure)) => self.heard.failure = Some(failure),
            Err(_) => {
                self.caller.reply(Reply::Note(text.to_owned()));
            }
        }
    }
}

fn broken(error: io::Error) -> Error {
    Error::bug("what `tow` says cannot be read").source_error(error)
}

/// Waits until the call is cancelled or there is something to read.
fn ready(
    cancel: Option<std::os::fd::BorrowedFd<'_>>,
    stdout: Option<&impl AsFd>,
    stderr: Option<&impl AsFd>,
) -> (bool, bool, bool) {
    let descriptors = [cancel, stdout.map(AsFd::as_fd), stderr.map(AsFd::as_fd)];
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .flatten()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let _ = poll(&mut polled, Some(&timeout));
    let mut found = polled.iter().map(|one| !one.revents().is_empty());
    let [cancelled, answer, message] =
        descriptors.map(|descriptor| descriptor.is_some() && found.next().unwrap_or(false));
    (cancelled, answer, message)
}

/// Lines from bytes as they come.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// What is before it holds no end of a line.
    searched: usize,
}

impl Lines {
    /// Reads once; `false` at the end.
    fn read(&mut self, from: &mut Option<impl Read>) -> io::Result<bool> {
        let Some(from) = from else { return Ok(false) };
        let mut chunk = [0; 16 << 10];
        let count = loop {
            match from.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.bytes.extend_from_slice(&chunk[..count]);
        if self.bytes.len() > MAX_LINE_BYTES {
            return Err(io::Error::other("a line is too long"));
        }
        Ok(count > 0)
    }

    /// The next line; at the end also one without an end.
    fn next(&mut self, is_over: bool) -> Option<Vec<u8>> {
        let rest = &self.bytes[self.searched..];
        let Some(place) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            if is_over && !self.bytes.is_empty() {
                self.searched = 0;
                return Some(std::mem::take(&mut self.bytes));
            }
            return None;
        };
        let end = self.searched + place;
        let rest = self.bytes.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.pop();
        self.searched = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_whatever_the_pieces() {
        let text = b"one\n\ntwo three\nlast";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                assert!(lines.read(&mut Some(piece)).expect("it is read"));
                while let Some(line) = lines.next(false) {
                    found.push(line);
                }
            }
            assert!(!lines.read(&mut Some(&b""[..])).expect("it is read"));
            found.extend(lines.next(true));
            assert_eq!(found, [&b"one"[..], b"", b"two three", b"last"], "{size}");
            assert_eq!(lines.next(true), None);
        }
    }
}
