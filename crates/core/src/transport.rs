//! The seam to one machine: run words there, move bytes, forward ports. No runtime is named: calls
//! block, and whoever must not wait calls from a thread of their own.
//!
//! Words are argument vectors, never shell strings; what a far shell would do to them is prevented
//! by the transport. A path that does not begin with `/` is below the user's home over there.

use crate::Result;
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::ops::Range;
use std::time::Duration;

/// What a command left.
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
    pub fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.err);
        text.lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it said nothing")
            .trim()
            .to_owned()
    }
}

/// A command that goes on, with pipes to and from it. Dropped, it is ended here; what it started
/// over there may live on.
pub trait Session: Send {
    /// Its stdin; once.
    fn input(&mut self) -> Option<Box<dyn Write + Send>>;
    /// Its stdout; once.
    fn output(&mut self) -> Option<Box<dyn Read + Send>>;
    /// What it has written on stderr so far, the end of it if it was much.
    fn said(&self) -> String;
    /// Waits for its end and gives its code.
    fn wait(&mut self) -> Result<i32>;
    /// The end of the line to it, also while another thread waits for its output.
    fn hang_up(&mut self);
}

/// A port here that leads to one over there, while this lives.
pub trait Forward: Send {
    /// On loopback.
    fn port(&self) -> u16;
}

/// How a user is let in on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    /// Files of keys, as the user's configuration has them.
    pub keys: Vec<String>,
}

/// One machine. An error of kind `Unreachable` means that nothing is known of what was asked:
/// it may have been done.
pub trait Transport: Send + Sync + fmt::Debug {
    /// For messages: `login`, `this machine`.
    fn place(&self) -> &str;

    /// Makes sure that it can be reached, signing in where that is needed. With `may_ask` the user
    /// may be asked on the terminal; without, what would ask is an error that says so.
    fn connect(&self, may_ask: bool) -> Result<()>;

    /// Runs words to their end, with `input` on stdin, for at most `limit`.
    fn run(&self, words: &[&str], input: &[u8], limit: Duration) -> Result<Ran>;

    /// Starts words and leaves them running.
    fn spawn(&self, words: &[&str]) -> Result<Box<dyn Session>>;

    /// Makes a file, and the folders it lies in, whole or not at all.
    fn put(&self, path: &str, bytes: &mut dyn Read, mode: u32) -> Result<()>;

    /// A part of a file, shorter where the file ends; `None` when there is no file.
    fn get(&self, path: &str, range: Range<u64>) -> Result<Option<Vec<u8>>>;

    /// A port of loopback here that leads to `port` of `host`, as that machine sees it.
    fn forward(&self, host: &str, port: u16) -> Result<Box<dyn Forward>>;

    /// A command of this machine that runs `argv` there with our own stdin and stdout; with
    /// `terminal` it has a terminal there too.
    fn interactive(&self, argv: &[&str], terminal: bool) -> Result<Vec<OsString>>;

    /// A command of this machine that becomes a plain connection to a port over there, on its stdin
    /// and stdout: what a `ProxyCommand` is.
    fn proxy(&self, host: &str, port: u16) -> Result<Vec<OsString>>;

    /// How the user is let in there, for a configuration that ssh reads.
    fn login(&self) -> Result<Login>;

    /// Lets the shared connection go.
    fn close(&self);
}
