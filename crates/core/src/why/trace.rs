//! Python tracebacks in a log: where each ends, and which belong to one chain.

use super::frame::{Frame, frame, is_source};
use super::lines::{Line, indent};
use std::collections::BTreeMap;

pub(super) const TRACEBACK_HEADER: &[u8] = b"Traceback (most recent call last):";

/// How a traceback is linked to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Link {
    #[default]
    Alone,
    /// "The above exception was the direct cause of the following exception".
    CausedBy,
    /// "During handling of the above exception, another exception occurred".
    WhileHandling,
    /// Quoted in the message of the one before: a worker's own traceback, a member of a group.
    Quoted,
}

/// Whether the exception ended the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Standing {
    #[default]
    Fatal,
    /// It ended a thread, a task or a function that runs at exit, and perhaps the program.
    Thread,
    /// Python says itself that it goes on ("Exception ignored in", a logging error).
    Harmless,
}

/// One traceback, ended by the line that names the exception.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The line of the exception.
    pub(super) at: usize,
    pub(super) link: Link,
    pub(super) standing: Standing,
    /// The calls, outermost first.
    pub(super) frames: Vec<Frame<'a>>,
    /// Only a line that is indented no further than this can name the exception, because torchrun
    /// indents what it quotes.
    indent: usize,
    /// It began without a header, as a syntax error of the program itself does.
    bare: bool,
}

impl Block<'_> {
    /// Whether a function that the other exception passed through raised this one: its `except`
    /// clause words the same error differently.
    pub(super) fn rewords(&self, other: &Block) -> bool {
        self.frames.last().is_some_and(|last| {
            other
                .frames
                .iter()
                .any(|frame| frame.file == last.file && frame.function == last.function)
        })
    }
    /// Whether Python failed to start a program, which looks like a missing file.
    pub(super) fn starts_program(&self) -> bool {
        self.frames.last().is_some_and(|frame| {
            frame.file.ends_with(b"subprocess.py") && frame.function == b"_execute_child"
        })
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

/// The tracebacks of all ranks. Ranks write in turns, so each is followed apart.
pub(super) fn traces<'a>(lines: &'a [Line<'a>]) -> Traces<'a> {
    let mut streams: BTreeMap<Option<u32>, Stream<'a>> = BTreeMap::new();
    let mut inside = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        inside[at] = streams.entry(line.rank).or_default().take(at, line);
    }
    Traces {
        chains: streams
            .into_values()
            .flat_map(|stream| stream.chains)
            .collect(),
        inside,
    }
}

/// The state of reading one rank's output.
#[derive(Default)]
struct Stream<'a> {
    chains: Vec<Chain<'a>>,
    open: Option<Block<'a>>,
    link: Link,
    standing: Standing,
    started: bool,
    /// The line before named an exception, and calls below it are quoted in its message.
    just_named: bool,
    /// The line before opens a member of a group, which may have no calls.
    member: bool,
}

impl<'a> Stream<'a> {
    /// Whether the line is part of a traceback.
    fn take(&mut self, at: usize, line: &'a Line<'a>) -> bool {
        let text = line.text();
        let (just_named, member) = (
            std::mem::take(&mut self.just_named),
            std::mem::take(&mut self.member),
        );
        if is_header(text) {
            self.begin(text, false);
            return true;
        }
        if self.open.is_some() {
            return self.inside(at, line);
        }
        let Some(call) = frame(text) else {
            if member && !line.is_indented() && !is_member(line) {
                self.begin(text, false);
                return self.inside(at, line);
            }
            self.started |= !line.is_indented();
            return self.between(line);
        };
        // A tail may begin within a traceback; Ray quotes calls without a header; a syntax error of
        // the program has none.
        let begins = !self.started || just_named || call.function.is_empty();
        if begins {
            self.link = if just_named { Link::Quoted } else { self.link };
            self.begin(text, self.started && !just_named);
            return self.inside(at, line);
        }
        self.between(line)
    }

    fn begin(&mut self, text: &[u8], bare: bool) {
        let quoted = text.starts_with(b"Original ");
        let link = if quoted { Link::Quoted } else { self.link };
        let indent = if is_in_table(text) { indent(text) } else { 0 };
        self.open = Some(Block {
            at: 0,
            link,
            standing: self.standing,
            frames: Vec::new(),
            indent,
            bare,
        });
        (self.link, self.standing, self.started) = (Link::Alone, Standing::Fatal, true);
    }

    fn inside(&mut self, at: usize, line: &'a Line<'a>) -> bool {
        let Some(mut block) = self.open.take() else {
            return false;
        };
        let text = line.text();
        if let Some(call) = frame(text) {
            block.frames.push(call);
        } else if indent(text) > block.indent || is_boxed(text) {
            if let Some(last) = block
                .frames
                .last_mut()
                .filter(|last| last.source.is_empty() && is_source(text))
            {
                last.take_source(text);
            }
        } else {
            block.at = at;
            self.just_named = true;
            return self.file(block, text);
        }
        self.open = Some(block);
        true
    }

    fn file(&mut self, block: Block<'a>, text: &[u8]) -> bool {
        if block.bare && !is_syntax(text) {
            return false;
        }
        if block.standing == Standing::Harmless {
            return true;
        }
        match self.chains.last_mut() {
            Some(chain) if block.link != Link::Alone => chain.push(block),
            _ => self.chains.push(vec![block]),
        }
        true
    }

    /// A line between tracebacks, which may tell how the next one is linked to the last.
    fn between(&mut self, line: &Line) -> bool {
        let text = line.text();
        (self.link, self.standing) = (Link::Alone, Standing::Fatal);
        if text.starts_with(b"During handling of the above exception") {
            self.link = Link::WhileHandling;
        } else if text.starts_with(b"The above exception was the direct cause") {
            self.link = Link::CausedBy;
        } else if is_member(line) {
            (self.link, self.member) = (Link::Quoted, true);
        } else if text.starts_with(b"-- Process ")
            && text.ends_with(b" terminated with the following error:")
        {
            self.link = Link::Quoted;
        } else if text.starts_with(b"Exception ignored ") || text == b"--- Logging error ---" {
            self.standing = Standing::Harmless;
        } else if is_aside(text) {
            self.standing = Standing::Thread;
        }
        self.link != Link::Alone || self.standing != Standing::Fatal
    }
}

/// Whether the line stands above the traceback of a thread, a task of asyncio or a function that
/// runs at exit.
fn is_aside(text: &[u8]) -> bool {
    let thread = text.starts_with(b"Exception in thread ") && text.ends_with(b":");
    thread || text.starts_with(b"future: <") || text.starts_with(b"Error in atexit._run_exitfuncs")
}

/// Whether the line begins a traceback. A progress bar may stand before it on the same line. An
/// indented one is a quotation.
fn is_header(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let rich = text.starts_with("╭".as_bytes())
        && text
            .windows(TRACEBACK_HEADER.len() - 1)
            .any(|part| part == &TRACEBACK_HEADER[..TRACEBACK_HEADER.len() - 1]);
    rich || (text.ends_with(TRACEBACK_HEADER)
        && (text.trim_ascii_start() != TRACEBACK_HEADER || text.starts_with(b"T")))
}

/// A traceback as torchrun quotes it in its table of failures.
fn is_in_table(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"traceback : ")
}

/// The line above a member of an exception group: `+-+---------------- 1 ----------------`.
fn is_member(line: &Line) -> bool {
    line.grouped && line.text().starts_with(b"+-") && line.text().iter().any(u8::is_ascii_digit)
}

/// The `rich` library draws a box around the calls; `loguru` marks the call that it caught.
fn is_boxed(text: &[u8]) -> bool {
    ["│", "╭", "╰", "❱", "> File "]
        .iter()
        .any(|edge| text.starts_with(edge.as_bytes()))
}

/// An error that Python finds before it runs anything, hence without calls.
pub(super) fn is_syntax(exception: &[u8]) -> bool {
    ["SyntaxError", "IndentationError", "TabError"]
        .iter()
        .any(|name| exception.starts_with(name.as_bytes()))
}
