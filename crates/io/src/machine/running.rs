//! A running program and its three pipes.

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

/// The output that a program has written to a pipe so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapturedOutput(Arc<(Mutex<Captured>, Condvar)>);

#[derive(Debug, Default)]
struct Captured {
    bytes: Vec<u8>,
    is_complete: bool,
}

impl CapturedOutput {
    /// Reads until the pipe is closed. With `echo` it is also written to our stderr.
    pub(crate) fn listen(mut pipe: impl Read + Send + 'static, echo: bool) -> io::Result<Self> {
        let stderr = Self::default();
        let captured = stderr.clone();
        std::thread::Builder::new().spawn(move || {
            let mut piece = [0; 8192];
            loop {
                match pipe.read(&mut piece) {
                    Ok(count @ 1..) => captured.add(&piece[..count], echo),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => break,
                }
            }
            captured
                .0
                .0
                .lock()
                .expect("no panic while held")
                .is_complete = true;
            captured.0.1.notify_all();
        })?;
        Ok(stderr)
    }

    fn add(&self, piece: &[u8], echo: bool) {
        if echo {
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

    /// Waits for the end of the pipe, for a program that has ended; all of its output.
    pub(crate) fn wait_for_all(&self) -> Vec<u8> {
        let captured = self.0.0.lock().expect("no panic while held");
        let waited = self
            .0
            .1
            .wait_timeout_while(captured, STDERR_CLOSE_TIMEOUT, |captured| {
                !captured.is_complete
            });
        waited.expect("no panic while held").0.bytes.clone()
    }
}

pub(crate) struct Running {
    group: Group,
    input: Option<Box<dyn Write + Send>>,
    output: Option<Box<dyn Read + Send>>,
    stderr: CapturedOutput,
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
        let stderr = group
            .errors()
            .map(|pipe| CapturedOutput::listen(pipe, false))
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
            stderr,
        })
    }

    pub(crate) fn input(&mut self) -> Option<Box<dyn Write + Send>> {
        self.input.take()
    }
    pub(crate) fn output(&mut self) -> Option<Box<dyn Read + Send>> {
        self.output.take()
    }
    /// Puts back the rest of its output.
    pub(crate) fn set_output(&mut self, output: Box<dyn Read + Send>) {
        self.output = Some(output);
    }
    pub(crate) fn stderr(&self) -> &CapturedOutput {
        &self.stderr
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

    /// Waits for its end and for the end of stderr; its exit code. Output that nobody reads is
    /// thrown away.
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Option<i32>> {
        drop(self.input.take());
        if let Some(mut output) = self.output.take() {
            std::thread::Builder::new().spawn(move || io::copy(&mut output, &mut io::sink()))?;
        }
        let code = self.group.wait_until(deadline)?;
        if code.is_some() {
            self.stderr.wait_for_all();
        }
        Ok(code)
    }

    /// Writes `input` and waits for the end; `None` if the deadline came first. The end includes
    /// the end of its output, which a process that it started may hold open.
    pub(crate) fn finish(&mut self, input: &[u8], deadline: Instant) -> io::Result<Option<Ran>> {
        if let (Some(mut pipe), false) = (self.input.take(), input.is_empty()) {
            let input = input.to_vec();
            // It may not read all of it.
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
            err: self.stderr.wait_for_all(),
        }))
    }
}
