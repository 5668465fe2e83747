//! The only place that prints. stdout is data, stderr is status; colours only on a terminal.

#![expect(clippy::print_stderr, reason = "this is the owner of both streams")]

use anstyle::{AnsiColor, Style};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;

/// Writes to stdout. A reader that went away (`tow ps | head`) ends us quietly.
pub(crate) fn data(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        say_parting_words();
        #[expect(clippy::exit, reason = "nobody reads any more")]
        std::process::exit(0);
    }
}

static PARTING_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// What is said on stderr should nobody read stdout any more: that something goes on, and how to end it.
pub(crate) fn set_parting_words(words: String) {
    *PARTING_WORDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(words);
}

fn say_parting_words() {
    if let Some(words) = PARTING_WORDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take() {
        status(&words);
    }
}

/// A line for people on stderr.
pub(crate) fn status(line: &str) {
    eprintln!("{line}");
}

/// A warning on stderr; the same words only once in a call.
pub(crate) fn warn_once(line: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().is_ok_and(|mut said| said.insert(line.to_owned())) {
        status(&format!("warning: {line}"));
    }
}

/// Something that goes on for long, in a line of its own, also where a line is being drawn.
pub(crate) fn trouble(line: &str) {
    if io::stderr().is_terminal() {
        redraw("");
    }
    status(&format!("warning: {line}"));
}

/// Draws one line over the last one on stderr; an empty one leaves nothing.
pub(crate) fn redraw(line: &str) {
    eprint!("\r\x1b[2K{line}");
    let _ = io::stderr().flush();
}

/// Whether somebody sits in front of us who can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks; anything but a yes is a no.
pub(crate) fn ask(question: &str) -> bool {
    eprint!("{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// What to do next, in quiet colours.
pub(crate) fn hint(line: &str) {
    status(&paint(Paint::Quiet, &format!("  {line}"), stderr_has_colour()));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Good,
    Bad,
    Busy,
    Waiting,
    Quiet,
    Bold,
}

pub(crate) fn stdout_has_colour() -> bool {
    io::stdout().is_terminal() && allowed()
}

pub(crate) fn stderr_has_colour() -> bool {
    io::stderr().is_terminal() && allowed()
}

/// Whether stdout is a terminal that knows escapes.
pub(crate) fn stdout_knows_escapes() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

pub(crate) fn paint(paint: Paint, text: &str, colour: bool) -> String {
    if !colour || paint == Paint::Plain {
        return text.to_owned();
    }
    let style = match paint {
        Paint::Plain => Style::new(),
        Paint::Good => AnsiColor::Green.on_default(),
        Paint::Bad => AnsiColor::Red.on_default(),
        Paint::Busy => AnsiColor::Cyan.on_default(),
        Paint::Waiting => AnsiColor::Yellow.on_default(),
        Paint::Quiet => Style::new().dimmed(),
        Paint::Bold => Style::new().bold(),
    };
    format!("{style}{text}{style:#}")
}

/// Columns of the terminal, or `None` where there is none.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| size.ws_col as usize).filter(|width| *width > 0)
}

/// The colour of a state.
pub(crate) fn state_paint(state: &str) -> Paint {
    match state {
        "succeeded" => Paint::Good,
        "failed" | "lost" => Paint::Bad,
        "running" => Paint::Busy,
        "queued" | "staging" | "submitting" | "drafted" => Paint::Waiting,
        _ => Paint::Quiet,
    }
}
