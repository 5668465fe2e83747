//! The end of a log as clean lines, and whether a line shows that the program is still alive.

use super::MAX_LINE_CHARACTERS_SHOWN;
use super::trace::TRACEBACK_HEADER;
use crate::visible::is_hidden;
use regex::bytes::Regex;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The number of bytes at the end of a log that are read.
const LOG_END_BYTES: usize = 256 * 1024;
/// No message starts later than this in its line.
const MAX_LINE_BYTES_SEARCHED: usize = 4096;
/// A message with more lines than this after it did not end the program.
const MAX_LINES_AFTER: usize = 40;
/// A progress bar is drawn once or twice more while a program dies.
const MAX_PROGRESS_BARS_AFTER: usize = 5;

/// One line, without colours and without the name of the rank in front.
pub(super) struct Line<'a> {
    shown: Cow<'a, [u8]>,
    start: usize,
    /// From torch's `[rank3]:`, which stands before the last messages of a rank, or from `mpirun`.
    pub(super) rank: Option<u32>,
    /// Part of the drawing of a Python exception group; its margin is left out of the text.
    pub(super) grouped: bool,
}

impl Line<'_> {
    pub(super) fn text(&self) -> &[u8] {
        &self.shown[self.start..]
    }
    /// As evidence for people: the whole line, cut.
    pub(super) fn evidence(&self) -> String {
        printable(
            if self.grouped {
                self.text()
            } else {
                &self.shown
            },
            MAX_LINE_CHARACTERS_SHOWN,
        )
    }
    pub(super) fn is_indented(&self) -> bool {
        self.text().first().is_some_and(u8::is_ascii_whitespace)
    }
}

/// Printable text: without characters that control a terminal or change the direction of text, and
/// cut after so many characters.
pub(super) fn printable(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = text
        .trim()
        .chars()
        .map(|letter| if letter == '\t' { ' ' } else { letter });
    shown
        .filter(|letter| !letter.is_control() && !is_unseen(*letter))
        .take(most)
        .collect()
}

/// Characters that change how others are shown, or that have no shape. Joiners are kept, because
/// letters need them.
const fn is_unseen(letter: char) -> bool {
    is_hidden(letter)
        || matches!(letter, '\u{200b}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// How far a line is indented.
pub(super) fn indent(text: &[u8]) -> usize {
    text.len() - text.trim_ascii_start().len()
}

/// The lines that are not blank. A carriage return ends a line too, so that a progress bar is many
/// short lines and not one of megabytes.
pub(super) fn split(tail: &[u8]) -> Vec<Line<'_>> {
    let pieces = window(tail).split(|&byte| byte == b'\n' || byte == b'\r');
    let mut lines: Vec<Line> = pieces
        .filter(|piece| !piece.trim_ascii().is_empty())
        .map(clean)
        .collect();
    drop_margins(&mut lines);
    lines.retain(|line| !line.text().trim_ascii().is_empty());
    lines
}

/// Python draws a margin of `|` and `+` around the members of an exception group.
fn drop_margins(lines: &mut [Line]) {
    let mut within = BTreeSet::new();
    for line in lines {
        let margin = indent(line.text());
        let text = &line.text()[margin..];
        let is_head = text.starts_with(b"+ Exception Group Traceback");
        let goes_on = margin > 0
            && within.contains(&line.rank)
            && (text.starts_with(b"|") || text.starts_with(b"+-"));
        if !is_head && !goes_on {
            within.remove(&line.rank);
            continue;
        }
        let bar = if text.starts_with(b"+-") {
            0
        } else {
            text.len().min(2)
        };
        within.insert(line.rank);
        line.start += margin + bar;
        line.grouped = true;
    }
}

/// The last part of the log, from the start of a line.
fn window(tail: &[u8]) -> &[u8] {
    if tail.len() <= LOG_END_BYTES {
        return tail;
    }
    let end = &tail[tail.len() - LOG_END_BYTES..];
    let line = end.iter().position(|&byte| byte == b'\n' || byte == b'\r');
    line.map_or(&[], |at| &end[at + 1..])
}

fn clean(piece: &[u8]) -> Line<'_> {
    static PREFIX: OnceLock<Regex> = OnceLock::new();
    let prefix = compiled(
        &PREFIX,
        r"^(?:(?:\[default\d+\]: ?)?\[(?:rank|default)(\d{1,9})\]: ?|\[\d+,(\d{1,9})\]<std(?:out|err)>: ?|\((?:\w+ )?pid=\d+(?:, ip=[\d.]+)?\) )",
    );
    // A program that never ends its line dies in the middle of it.
    let dies = piece.len() > MAX_LINE_BYTES_SEARCHED && piece.ends_with(TRACEBACK_HEADER);
    let cut = if dies {
        TRACEBACK_HEADER
    } else {
        &piece[..piece.len().min(MAX_LINE_BYTES_SEARCHED)]
    };
    let shown = without_colours(cut);
    let found = prefix.captures(&shown).and_then(|found| {
        Some((
            found.get(0)?.end(),
            found
                .get(1)
                .or_else(|| found.get(2))
                .map(|digits| digits.range()),
        ))
    });
    let Some((start, digits)) = found else {
        return Line {
            shown,
            start: 0,
            rank: None,
            grouped: false,
        };
    };
    let rank = digits.and_then(|digits| std::str::from_utf8(&shown[digits]).ok()?.parse().ok());
    Line {
        shown,
        start,
        rank,
        grouped: false,
    }
}

/// Drops terminal escape sequences: colours, cursor moves, window titles.
fn without_colours(text: &[u8]) -> Cow<'_, [u8]> {
    static ESCAPE: OnceLock<Regex> = OnceLock::new();
    if !text.contains(&0x1b) {
        return Cow::Borrowed(text);
    }
    let escape = compiled(
        &ESCAPE,
        r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[^\[\]])?",
    );
    escape.replace_all(text, &b""[..])
}

/// A pattern of ours, built on first use. ASCII rules, so that any bytes will do.
pub(super) fn compiled(cell: &'static OnceLock<Regex>, pattern: &str) -> &'static Regex {
    cell.get_or_init(|| Regex::new(&format!("(?-u){pattern}")).expect("our own pattern"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Launchers, libraries and the machine cleaning up: these lines show nothing about the
    /// program.
    Noise,
    Bar,
    /// The program is at work again, so it had caught the error before.
    GoingOn,
    Ordinary,
}

pub(super) fn kind(line: &Line) -> Kind {
    static NOISE: OnceLock<Regex> = OnceLock::new();
    static BAR: OnceLock<Regex> = OnceLock::new();
    static GOING_ON: OnceLock<Regex> = OnceLock::new();
    static PROGRESS: OnceLock<Regex> = OnceLock::new();
    static FAILURE: OnceLock<Regex> = OnceLock::new();
    let text = line.text();
    if compiled(&NOISE, NOISE_PATTERN).is_match(text) {
        return Kind::Noise;
    }
    if compiled(&BAR, r"\d%\|").is_match(text) {
        return Kind::Bar;
    }
    let shows_progress = || {
        compiled(&PROGRESS, PROGRESS_PATTERN).is_match(text)
            && !compiled(&FAILURE, r"(?i)fail|error|abort|crash|exception|interrupt").is_match(text)
    };
    if compiled(&GOING_ON, GOING_ON_PATTERN).is_match(text) || shows_progress() {
        return Kind::GoingOn;
    }
    if line.is_indented() {
        Kind::Noise
    } else {
        Kind::Ordinary
    }
}

const NOISE_PATTERN: &str = concat!(
    r"^(?:wandb|srun|slurmstepd|make(?:\[\d+\])?|mpirun|swanlab): ",
    r"|^\[?[IWEF]\d{4} [\d:.]+ |^\[?[IWEF]\d{0,4} ?[\d:. ]*\S+\.(?:cpp|cc|py):\d+\]",
    r"|torch\.distributed\.(?:elastic|run|launcher)|\blaunch\.py:\d+|NCCL (?:INFO|WARN|TRACE|version)",
    r"|^frame #\d+|^Exception raised from |^[=*-]{5,}|^\+ |^Exception ignored in",
    r"|\.py:\d+: \w*Warning: |^(?:Current thread|Thread) 0x|^Extension modules: |^Aborted",
    r"|^\S+: (?:-c: )?line \d+: `|^Set the environment variable HYDRA_FULL_ERROR|^Pass --helpshort|^Task exception was never retrieved|^note: run with `RUST_BACKTRACE|^Node\.js v\d",
    r"|^CUDA kernel errors might|^For debugging consider|^Compile with `TORCH_USE|^Search for `cuda|^terminate called ",
);

const GOING_ON_PATTERN: &str = concat!(
    r"(?i)\b(?:retrying|trying again|falling back|fall back to|will (?:download|retry|continue|skip)|downloading|continuing|resuming|resumed",
    r"|recovered|succeeded|successfully|training (?:is )?(?:complete|completed|finished|done))\b|^(?:all )?(?:done|finished|completed)\W*$",
);

const PROGRESS_PATTERN: &str = r"(?i)\b(?:epoch|step|iter|iteration|batch)\W{0,3}\d|\bloss\W{1,3}\d|\b(?:saved|saving) .*(?:checkpoint|model)";

/// The kinds of lines that follow each line, counted once from the end.
pub(super) struct After(Vec<Following>);

#[derive(Clone, Copy, Default)]
struct Following {
    ordinary: usize,
    bars: usize,
    going_on: bool,
}

impl After {
    /// `explained` marks the lines that belong to a traceback or are a message themselves.
    pub(super) fn new(kinds: &[Kind], explained: &[bool]) -> Self {
        let mut following = Following::default();
        let mut all = vec![following; kinds.len()];
        for (at, kind) in kinds.iter().enumerate().rev() {
            all[at] = following;
            if explained[at] {
                continue;
            }
            match kind {
                Kind::Noise => {}
                Kind::Bar => following.bars += 1,
                Kind::GoingOn => following.going_on = true,
                Kind::Ordinary => following.ordinary += 1,
            }
        }
        Self(all)
    }

    /// Whether the program went on working after this line.
    pub(super) fn went_on(&self, at: usize) -> bool {
        let following = self.0[at];
        following.going_on
            || following.ordinary > MAX_LINES_AFTER
            || following.bars > MAX_PROGRESS_BARS_AFTER
    }

    /// Whether the program itself wrote nothing after this line.
    pub(super) fn is_last_message(&self, at: usize) -> bool {
        !self.went_on(at) && self.0[at].ordinary == 0
    }
}
