//! The seam to one machine: run commands there, move bytes, forward ports. No runtime is named:
//! calls block, and a caller that must not wait uses a thread of its own.
//!
//! Commands are argument vectors, never shell strings; the transport quotes them for the remote
//! shell. A path that does not begin with `/` is below the user's home on that machine.

use crate::Result;
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::ops::Range;
use std::time::Duration;

/// The exit code and the output of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// Its exit code; 128+n when a signal ended it.
    pub code: i32,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

impl Ran {
    pub const fn is_good(&self) -> bool {
        self.code == 0
    }

    /// The last line it wrote on stderr, for messages.
    pub fn last_stderr_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.err);
        text.lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it printed nothing")
            .trim()
            .to_owned()
    }
}

/// A command that keeps running, with pipes to and from it. Dropping it ends it here; processes
/// that it started on the machine may live on.
pub trait Session: Send {
    /// Its stdin; the second call returns `None`.
    fn input(&mut self) -> Option<Box<dyn Write + Send>>;
    /// Its stdout; the second call returns `None`.
    fn output(&mut self) -> Option<Box<dyn Read + Send>>;
    /// Its stderr so far; only the end of it if it is long.
    fn said(&self) -> String;
    /// Waits for its end and returns its exit code.
    fn wait(&mut self) -> Result<i32>;
    /// Ends the connection to it, also while another thread reads its output.
    fn hang_up(&mut self);
}

/// A local port that leads to one on the machine, while this value lives.
pub trait Forward: Send {
    /// On loopback.
    fn port(&self) -> u16;
}

/// The login of a user on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    /// Files of keys, as the user's configuration has them.
    pub keys: Vec<String>,
}

/// One machine. An error of kind `Unreachable` means that the outcome is unknown: the command may
/// have run.
pub trait Transport: Send + Sync + fmt::Debug {
    /// For messages: `login`, `this machine`.
    fn place(&self) -> &str;

    /// Bytes reach it without a network.
    fn is_this_machine(&self) -> bool {
        false
    }

    /// Connects, and signs in if needed. With `may_ask` the user may be asked on the terminal;
    /// without it, a question is an error.
    fn connect(&self, may_ask: bool) -> Result<()>;

    /// Runs a command to its end, with `input` on stdin, for at most `limit`.
    fn run(&self, words: &[&str], input: &[u8], limit: Duration) -> Result<Ran>;

    /// Starts a command and leaves it running.
    fn spawn(&self, words: &[&str]) -> Result<Box<dyn Session>>;

    /// Writes a file, and makes its folders. The file appears whole or not at all.
    fn put(&self, path: &str, bytes: &mut dyn Read, mode: u32) -> Result<()>;

    /// A part of a file, shorter where the file ends; `None` when there is no file.
    fn get(&self, path: &str, range: Range<u64>) -> Result<Option<Vec<u8>>>;

    /// A local port that leads to `port` of `host`, as that machine resolves it.
    fn forward(&self, host: &str, port: u16) -> Result<Box<dyn Forward>>;

    /// A command of this machine that runs `argv` there with our own stdin and stdout; with
    /// `terminal` it has a terminal there too.
    fn interactive(&self, argv: &[&str], terminal: bool) -> Result<Vec<OsString>>;

    /// A command of this machine that connects its stdin and stdout to a port there, for a
    /// `ProxyCommand`.
    fn proxy(&self, host: &str, port: u16) -> Result<Vec<OsString>>;

    /// The user's login there, for an ssh configuration.
    fn login(&self) -> Result<Login>;

    /// Closes the shared connection.
    fn close(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_good_without_a_code_and_its_last_words_are_told() {
        let ran = |code, err: &str| Ran {
            code,
            out: Vec::new(),
            err: err.as_bytes().to_vec(),
        };
        assert!(ran(0, "").is_good());
        assert!(!ran(1, "").is_good());
        assert_eq!(ran(1, "first\n last \n \n").last_stderr_line(), "last");
        assert_eq!(ran(1, " \n").last_stderr_line(), "it printed nothing");
    }
}
