//! Python tracebacks in a log: where each ends, and which belong to one chain.

use super::lines::{Line, compiled};
use regex::bytes::Regex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const HEADER: &[u8] = b"Traceback (most recent call last):";

/// How a traceback hangs on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Link {
    #[default]
    Alone,
    /// "The above exception was the direct cause of the following exception".
    CausedBy,
    /// "During handling of the above exception, another exception occurred".
    WhileHandling,
    /// Quoted in the message of the one before: a worker's own traceback.
    Quoted,
}

/// Whether the exception ended the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Standing {
    #[default]
    Fatal,
    /// It ended a thread; the program may have ended for it or not.
    Thread,
    /// Python says itself that it goes on ("Exception ignored in", a logging error).
    Harmless,
}

type Frame<'a> = (&'a [u8], &'a [u8]);

/// One traceback, ended by the line that names the exception.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The line of the exception.
    pub(super) at: usize,
    pub(super) link: Link,
    pub(super) standing: Standing,
    /// File and function of each call, outermost first.
    frames: Vec<Frame<'a>>,
}

impl Block<'_> {
    /// Whether this exception was raised by a function that the other passed through: by its `except`
    /// clause, to say the same in other words.
    pub(super) fn rewords(&self, other: &Block) -> bool {
        self.frames.last().is_some_and(|last| other.frames.contains(last))
    }
    /// Whether Python failed to start a program, which looks like a missing file.
    pub(super) fn starts_program(&self) -> bool {
        self.frames.last().is_some_and(|(file, function)| file.ends_with(b"subprocess.py") && *function == b"_execute_child")
    }
}

/// Tracebacks that belong together, first to last.
pub(super) type Chain<'a> = Vec<Block<'a>>;

/// All tracebacks of a log.
pub(super) struct Traces<'a> {
    pub(super) chains: Vec<Chain<'a>>,
    /// For each line: whether it is part of a traceback.
    pub(super) inside: Vec<bool>,
}

/// Ranks write in turns, so each is followed apart.
pub(super) fn traces<'a>(lines: &'a [Line<'a>]) -> Traces<'a> {
    let mut streams: BTreeMap<Option<u32>, Stream<'a>> = BTreeMap::new();
    let mut inside = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        inside[at] = streams.entry(line.rank).or_default().take(at, line);
    }
    Traces { chains: streams.into_values().flat_map(|stream| stream.chains).collect(), inside }
}

/// What is known of one rank's output so far.
#[derive(Default)]
struct Stream<'a> {
    chains: Vec<Chain<'a>>,
    open: Option<Block<'a>>,
    link: Link,
    standing: Standing,
    started: bool,
}

impl<'a> Stream<'a> {
    /// Whether the line is part of a traceback.
    fn take(&mut self, at: usize, line: &'a Line<'a>) -> bool {
        let text = line.text();
        if is_header(text) {
            self.begin(text);
            return true;
        }
        if self.open.is_some() {
            return self.inside(at, line);
        }
        // The tail may begin within a traceback.
        if !self.started && frame(text).is_some() {
            self.begin(text);
            return self.inside(at, line);
        }
        self.started |= !line.is_indented();
        self.between(text)
    }

    fn begin(&mut self, text: &[u8]) {
        let quoted = text.starts_with(b"Original ");
        let link = if quoted { Link::Quoted } else { self.link };
        self.open = Some(Block { at: 0, link, standing: self.standing, frames: Vec::new() });
        (self.link, self.standing, self.started) = (Link::Alone, Standing::Fatal, true);
    }

    fn inside(&mut self, at: usize, line: &'a Line<'a>) -> bool {
        let Some(mut block) = self.open.take() else { return false };
        if line.is_indented() || is_boxed(line.text()) {
            block.frames.extend(frame(line.text()));
            self.open = Some(block);
            return true;
        }
        block.at = at;
        self.file(block);
        true
    }

    fn file(&mut self, block: Block<'a>) {
        if block.standing == Standing::Harmless {
            return;
        }
        match self.chains.last_mut() {
            Some(chain) if block.link != Link::Alone => chain.push(block),
            _ => self.chains.push(vec![block]),
        }
    }

    /// A line between tracebacks, which may say how the next one hangs on the last.
    fn between(&mut self, text: &[u8]) -> bool {
        (self.link, self.standing) = (Link::Alone, Standing::Fatal);
        if text.starts_with(b"During handling of the above exception") {
            self.link = Link::WhileHandling;
        } else if text.starts_with(b"The above exception was the direct cause") {
            self.link = Link::CausedBy;
        } else if text.starts_with(b"-- Process ") && text.ends_with(b" terminated with the following error:") {
            self.link = Link::Quoted;
        } else if text.starts_with(b"Exception ignored in") || text == b"--- Logging error ---" {
            self.standing = Standing::Harmless;
        } else if text.starts_with(b"Exception in thread ") {
            self.standing = Standing::Thread;
        }
        self.link != Link::Alone || self.standing != Standing::Fatal
    }
}

/// A progress bar may stand before it on the same line; one that is indented is quoted by something.
fn is_header(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let rich = text.starts_with("╭".as_bytes()) && text.windows(HEADER.len() - 1).any(|part| part == &HEADER[..HEADER.len() - 1]);
    rich || (text.ends_with(HEADER) && (text.trim_ascii_start() != HEADER || text.starts_with(b"T")))
}

/// The `rich` library draws a box around the calls.
fn is_boxed(text: &[u8]) -> bool {
    ["│", "╭", "╰", "❱"].iter().any(|edge| text.starts_with(edge.as_bytes()))
}

fn frame(text: &[u8]) -> Option<Frame<'_>> {
    static FRAME: OnceLock<Regex> = OnceLock::new();
    let found = compiled(&FRAME, r#"^\s+File "([^"]*)", line \d+, in (.+)$"#).captures(text)?;
    Some((found.get(1)?.as_bytes(), found.get(2)?.as_bytes()))
}
