//! A program that runs, and its three pipes.

use super::group::Group;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use towline_core::transport::Ran;

/// At least this many bytes at the end of stderr are kept.
const STDERR_KEPT_BYTES: usize = 1 << 20;

/// How long stderr may stay open after its program has ended: a process that it left behind may
/// hold it.
const STDERR_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a program has written on stderr so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said(Arc<(Mutex<Heard>, Condvar)>);

#[derive(Debug, Default)]
struct Heard {
    bytes: Vec<u8>,
    is_all: bool,
}

impl Said {
    /// Listens until nobody holds the pipe any more; with `aloud` the user hears it too.
    pub(crate) fn listen(mut pipe: impl Read + Send + 'static, aloud: bool) -> io::Result<Self> {
        let said = Self::default();
        let heard = said.clone();
        std::thread::Builder::new().spawn(move || {
            let mut piece = [0; 8192];
            loop {
                match pipe.read(&mut piece) {
                    Ok(count @ 1..) => heard.add(&piece[..count], aloud),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => break,
                }
            }
            heard.0.0.lock().expect("no panic while held").is_all = true;
            heard.0.1.notify_all();
        })?;
        Ok(said)
    }

    fn add(&self, piece: &[u8], aloud: bool) {
        if aloud {
            let _ = io::stderr().write_all(piece);
        }
        let bytes = &mut self.0.0.lock().expect("no panic while held").bytes;
        bytes.extend_from_slice(piece);
        if bytes.len() > 2 * STDERR_KEPT_BYTES {
            bytes.drain(..bytes.len() - STDERR_KEPT_BYTES);
        }
    }

    pub(crate) fn so_far(&self) -> Vec<u8> {
        self.0.0.lock().expect("no panic while held").bytes.clone()
    }

    /// All of it, once the program has ended.
    pub(crate) fn at_last(&self) -> Vec<u8> {
        let heard = self.0.0.lock().expect("no panic while held");
        let waited = self
            .0
            .1
            .wait_timeout_while(heard, STDERR_CLOSE_TIMEOUT, |heard| !heard.is_all);
        waited.expect("no panic while held").0.bytes.clone()
    }
}

pub(crate) struct Running {
    group: Group,
    input: Option<Box<dyn Write + Send>>,
    output: Option<Box<dyn Read + Send>>,
    said: Said,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Running").field(&self.group).finish()
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut group = Group::start(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )?;
        let said = group
            .errors()
            .map(|pipe| Said::listen(pipe, false))
            .transpose()?
            .unwrap_or_default();
        let input = group
            .input()
            .map(|pipe| Box::new(pipe) as Box<dyn Write + Send>);
        let output = group
            .output()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        Ok(Self {
            group,
            input,
            output,
            said,
        })
    }

    pub(crate) fn input(&mut self) -> Option<Box<dyn Write + Send>> {
        self.input.take()
    }
    pub(crate) fn output(&mut self) -> Option<Box<dyn Read + Send>> {
        self.output.take()
    }
    /// Gives back what is left of its output.
    pub(crate) fn set_output(&mut self, output: Box<dyn Read + Send>) {
        self.output = Some(output);
    }
    pub(crate) fn said(&self) -> &Said {
        &self.said
    }
    /// Whether a signal ended it, once its end was seen.
    pub(crate) fn is_signalled(&self) -> bool {
        self.group.is_signalled()
    }
    pub(crate) fn kill(&mut self) {
        self.group.kill();
    }
    /// Its code, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.group.ended().unwrap_or(Some(1))
    }

    /// Its code, when it has ended and all it said was heard. What nobody reads of its output is
    /// thrown away.
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Option<i32>> {
        drop(self.input.take());
        if let Some(mut output) = self.output.take() {
            std::thread::Builder::new().spawn(move || io::copy(&mut output, &mut io::sink()))?;
        }
        let code = self.group.wait_until(deadline)?;
        if code.is_some() {
            self.said.at_last();
        }
        Ok(code)
    }

    /// To its end with `input`; `None` when the deadline came first. The end is also that of its
    /// output, which others may hold whom it started.
    pub(crate) fn finish(&mut self, input: &[u8], deadline: Instant) -> io::Result<Option<Ran>> {
        if let (Some(mut pipe), false) = (self.input.take(), input.is_empty()) {
            let input = input.to_vec();
            // It may not want all of it.
            std::thread::Builder::new().spawn(move || pipe.write_all(&input))?;
        }
        let (sender, read) = channel();
        if let Some(mut output) = self.output.take() {
            std::thread::Builder::new().spawn(move || {
                let mut bytes = Vec::new();
                let outcome = output.read_to_end(&mut bytes);
                let _ = sender.send(outcome.map(|_| bytes));
            })?;
        }
        let out = match read.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(bytes) => bytes?,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => Vec::new(),
        };
        let Some(code) = self.group.wait_until(Some(deadline))? else {
            return Ok(None);
        };
        Ok(Some(Ran {
            code,
            out,
            err: self.said.at_last(),
        }))
    }
}
