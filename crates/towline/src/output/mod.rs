//! The only place that prints. stdout is data, stderr is status; colours only on a terminal. In
//! text for people, terminal control characters are escaped; only bytes of jobs and files are
//! printed unchanged.

pub(crate) mod bar;
pub(crate) mod columns;
pub(crate) mod local_time;
pub(crate) mod page;
pub(crate) mod progress;
pub(crate) mod table;

use anstyle::{AnsiColor, Style};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use towline_core::quantity::Memory;
use towline_core::visible::{visible, visible_json};
use towline_core::{Error, Result};
use towline_host::surroundings;
use towline_wire::api::envelope::{Progress, ProgressLine};

/// Writes raw bytes to stdout. If the reader has gone (`tow ps | head`), the process ends quietly;
/// any other failure is an error.
pub(crate) fn data(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            say_parting_words();
            #[expect(clippy::exit, reason = "the reader of stdout is gone")]
            std::process::exit(0);
        }
        written => written
            .map_err(|error| Error::from_io("the output could not be written to stdout", error)),
    }
}

static PARTING_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// Sets the text for stderr if the reader of stdout goes away: that the run goes on, and how to end
/// it.
pub(crate) fn set_parting_words(words: String) {
    *PARTING_WORDS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(words);
}

fn say_parting_words() {
    if let Some(words) = PARTING_WORDS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .take()
    {
        status(&words);
    }
}

/// Writes text for people to stdout.
pub(crate) fn text(text: &str) -> Result<()> {
    data(shown(text).as_bytes())
}

/// Writes one value for programs to stdout.
pub(crate) fn json(value: &serde_json::Value) -> Result<()> {
    data(format!("{}\n", visible_json(&value.to_string())).as_bytes())
}

/// Prints a line for people on stderr. A failure is ignored, because there is nowhere to report it.
pub(crate) fn status(line: &str) {
    let mut stderr = io::stderr().lock();
    let cleared = if IS_DRAWN.swap(false, Ordering::Relaxed) {
        CLEAR_LINE
    } else {
        ""
    };
    let _ = writeln!(stderr, "{cleared}{}", shown(line));
}

/// Prints a value for programs on stderr.
pub(crate) fn status_json(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible_json(text));
}

/// Help and errors of the argument parser, in its own colours. If a user's argument contains
/// escapes, the colours are left out.
pub(crate) fn styled(error: &clap::Error, colour: bool) -> String {
    let plain = error.render().to_string();
    if colour && matches!(visible(&plain), std::borrow::Cow::Borrowed(_)) {
        error.render().ansi().to_string()
    } else {
        visible(&plain).into_owned()
    }
}

/// Prints the text of [`styled`] on stderr.
pub(crate) fn status_styled(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a warning on stderr; the same text only once per call.
pub(crate) fn warn_once(line: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID
        .lock()
        .is_ok_and(|mut said| said.insert(line.to_owned()))
    {
        status(&format!("warning: {line}"));
    }
}

/// Prints a lasting problem.
pub(crate) fn trouble(line: &str) {
    status(&format!("warning: {line}"));
}

/// Goes to the begin of a terminal's line and clears it.
const CLEAR_LINE: &str = "\r\x1b[2K";
/// A progress line stands on stderr. The next status takes its place.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Draws one line over the last one on stderr; an empty one clears it.
pub(crate) fn redraw(line: &str) {
    let mut stderr = io::stderr().lock();
    IS_DRAWN.store(!line.is_empty(), Ordering::Relaxed);
    let _ = write!(stderr, "{CLEAR_LINE}{}", shown(line)).and_then(|()| stderr.flush());
}

/// Whether a program wants the progress, as lines of JSON.
pub(crate) fn progress_is_json() -> bool {
    surroundings::variable_os(towline_host::own::PROGRESS_VARIABLE)
        .is_some_and(|value| value == "json")
}

/// Reports the progress to a program.
pub(crate) fn progress_json(progress: Progress) {
    let line = serde_json::to_string(&ProgressLine { progress });
    status_json(&line.unwrap_or_default());
}

/// Clears the terminal on stdout for [`screen`].
pub(crate) fn screen_begins() -> Result<()> {
    data(b"\x1b[2J")
}

/// Writes lines over those of the last call, and no more of them than the terminal has.
pub(crate) fn screen(lines: &[String]) -> Result<()> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
    let rows = size.map_or(24, |size| usize::from(size.ws_row).max(1));
    // The last row stays free: a line that ends there would scroll the terminal.
    let text: String = lines
        .iter()
        .take(rows - 1)
        .fold(String::new(), |text, line| {
            text + &shown(line) + CLEAR_REST_OF_LINE + "\r\n"
        });
    data(format!("{HOME}{text}{CLEAR_BELOW}").as_bytes())
}

/// Goes to the first line of the terminal.
const HOME: &str = "\x1b[H";
const CLEAR_REST_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Whether there is a user at a terminal who can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks; any answer but a yes is a no.
pub(crate) fn ask(question: &str) -> bool {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{} [y/N] ", shown(question)).and_then(|()| stderr.flush());
    drop(stderr);
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Prints the next step, in a dim colour.
pub(crate) fn hint(line: &str) {
    status(&paint(
        Paint::Quiet,
        &format!("  {line}"),
        stderr_has_colour(),
    ));
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

impl Paint {
    const ALL: [Self; 7] = [
        Self::Plain,
        Self::Good,
        Self::Bad,
        Self::Busy,
        Self::Waiting,
        Self::Quiet,
        Self::Bold,
    ];
}

pub(crate) fn stdout_has_colour() -> bool {
    io::stdout().is_terminal() && allowed()
}

pub(crate) fn stderr_has_colour() -> bool {
    io::stderr().is_terminal() && allowed()
}

/// Whether stdout is a terminal that understands escapes.
pub(crate) fn stdout_knows_escapes() -> bool {
    io::stdout().is_terminal()
        && surroundings::variable_os("TERM").is_none_or(|term| term != "dumb")
}

/// The columns of the terminal on stderr in which a line can be drawn over; `None` if there is none.
pub(crate) fn drawing_width() -> Option<usize> {
    let knows_escapes = surroundings::variable_os("TERM").is_none_or(|term| term != "dumb");
    if !io::stderr().is_terminal() || !knows_escapes {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok()?;
    // A terminal that does not know its size says 0.
    Some(
        Some(size.ws_col as usize)
            .filter(|width| *width > 0)
            .unwrap_or(80),
    )
}

fn allowed() -> bool {
    surroundings::variable_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && surroundings::variable_os("TERM").is_none_or(|term| term != "dumb")
}

/// Text in a colour. Until it is printed the colour is a marker that no name or message from
/// elsewhere can contain.
pub(crate) fn paint(paint: Paint, text: &str, colour: bool) -> String {
    if !colour || paint == Paint::Plain {
        return text.to_owned();
    }
    let mark = mark();
    format!("{mark}{}{}{mark}{}", paint as u8, text, Paint::Plain as u8)
}

/// The marker of a colour change inside this process: random, so that nobody can forge one.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let mut bytes = [0; 8];
        // Without random bytes the character alone still prevents accidents.
        let _ = getrandom::fill(&mut bytes);
        format!("\u{fdd0}{:016x}", u64::from_le_bytes(bytes))
    })
}

/// The text to print: with the colours of [`paint`], and nothing else that a terminal would obey.
fn shown(text: &str) -> String {
    let mut parts = text.split(mark());
    let mut shown = visible(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let (paint, rest) = part.split_at(part.len().min(1));
        shown += &Paint::ALL
            .iter()
            .find(|known| (**known as u8).to_string() == paint)
            .map_or_else(String::new, |paint| style(*paint));
        shown += &visible(rest);
    }
    shown
}

fn style(paint: Paint) -> String {
    let style = match paint {
        Paint::Plain => return anstyle::Reset.to_string(),
        Paint::Good => AnsiColor::Green.on_default(),
        Paint::Bad => AnsiColor::Red.on_default(),
        Paint::Busy => AnsiColor::Cyan.on_default(),
        Paint::Waiting => AnsiColor::Yellow.on_default(),
        Paint::Quiet => Style::new().dimmed(),
        Paint::Bold => Style::new().bold(),
    };
    style.to_string()
}

/// Bytes for people: a small number is not mistaken for a count.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else {
        Memory(bytes).to_string()
    }
}

/// The number of columns of the terminal; `None` if there is none.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(rustix::stdio::stdout())
        .ok()
        .map(|size| size.ws_col as usize)
        .filter(|width| *width > 0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_reach_a_terminal() {
        let line = format!(
            "{} {}",
            paint(Paint::Bad, "error:\x1b[2J", true),
            "\x1b[31m\u{202e}name\u{fdd0}0000000000000000"
        );
        assert_eq!(
            shown(&line),
            "\x1b[31merror:\\x1b[2J\x1b[0m \\x1b[31m\\u{202e}name\u{fdd0}0000000000000000"
        );
        assert_eq!(
            shown(&paint(Paint::Quiet, "9 of 10", true)),
            "\x1b[2m9 of 10\x1b[0m",
            "a digit behind a colour is text"
        );
        assert_eq!(shown(&paint(Paint::Good, "ok", false)), "ok");
    }
}
