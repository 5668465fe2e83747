//! The last messages of programs other than Python's tracebacks: Python that crashed, C++, Rust,
//! Go, Java, JavaScript, Julia, R, and tests.

use super::frame::{Frame, frame, own};
use super::lines::{Line, compiled, printable};
use super::{Form, LogError, MAX_LINE_CHARACTERS_SHOWN, Place};
use regex::bytes::{Captures, Regex, RegexSet};
use std::ops::Range;
use std::sync::OnceLock;

/// A program's own report of its crash.
pub(super) struct Crash {
    /// Its lines; others may stand between them.
    pub(super) lines: Range<usize>,
    pub(super) error: LogError,
}

/// The number of lines of one report that are read, at most.
const MAX_LINES_PER_CRASH: usize = 200;
/// The number of reports that are read, at most: the last ones, so that reading takes bounded time.
const MAX_CRASHES_READ: usize = 64;

/// How the rest of a report is read, given its first line.
enum ReportReader {
    Always(fn(&[Line], usize, &Captures) -> Crash),
    /// The first line alone is not enough for a report.
    Perhaps(fn(&[Line], usize, &Captures) -> Option<Crash>),
}

use ReportReader::{Always, Perhaps};

/// The first line of each kind of report, and how the rest is read.
static CRASH_HEADS: [(&str, ReportReader); 14] = [
    (r"^Fatal Python error: (.+)$", Always(fatal_python)),
    (
        r"^terminate called after throwing an instance of '([^']+)'",
        Always(cpp),
    ),
    (
        r"^((?:terminate called without an active exception|libc\+\+abi: terminating).*)$",
        Always(one_line),
    ),
    (
        r"^((?:double free or corruption|free\(\): |malloc\(\): |munmap_chunk\(\): |realloc\(\): |corrupted (?:size|double-linked)).*)$",
        Always(one_line),
    ),
    (
        r"^(\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*.*|==\d+==\s*ERROR: \w+Sanitizer: .*)$",
        Always(one_line),
    ),
    (
        r"^((?:[^\s:]+: )?([^\s:]+\.\w+):(\d+): (.+): Assertion .+ failed\.?)$",
        Always(c_assertion),
    ),
    (
        r"^thread '[^']*'(?: \(\d+\))? panicked at ([^'\s][^:]*):(\d+):\d+:?$",
        Perhaps(rust),
    ),
    (
        r"^thread '[^']*' panicked at '(.*)', ([^:]+):(\d+):\d+$",
        Always(old_rust),
    ),
    (r"^((?:panic|fatal error): .+)$", Perhaps(go)),
    (r#"^Exception in thread "[^"]*" (.+)$"#, Always(java)),
    (
        r"^(?:Uncaught )?((?:[A-Z]\w*)?Error(?: \[\w+\])?(?:: .*)?)$",
        Perhaps(javascript),
    ),
    (r"^ERROR: (?:LoadError: )?(.+)$", Perhaps(julia)),
    (r"^(Error(?: in .+?)? ?: ?.*)$", Perhaps(r)),
    (r"^FAILED (\S+(?: - .*)?)$", Perhaps(pytest)),
];

/// All reports in a log, in order.
pub(super) fn crashes(lines: &[Line], inside: &[bool]) -> Vec<Crash> {
    static COMPILED: OnceLock<(RegexSet, Vec<Regex>)> = OnceLock::new();
    let (set, each) = COMPILED.get_or_init(|| {
        let patterns: Vec<String> = CRASH_HEADS
            .iter()
            .map(|(pattern, _)| format!("(?-u){pattern}"))
            .collect();
        let each = patterns
            .iter()
            .map(|pattern| Regex::new(pattern).expect("our own pattern"))
            .collect();
        (RegexSet::new(&patterns).expect("our own patterns"), each)
    });
    let heads = lines
        .iter()
        .enumerate()
        .rev()
        .filter(|(at, _)| !inside[*at])
        .filter(|(_, line)| set.is_match(line.text()))
        .take(MAX_CRASHES_READ);
    let mut found: Vec<Crash> = heads
        .filter_map(|(at, line)| {
            set.matches(line.text()).iter().find_map(|which| {
                let head = each[which].captures(line.text())?;
                match CRASH_HEADS[which].1 {
                    Always(read_rest) => Some(read_rest(lines, at, &head)),
                    Perhaps(read_rest) => read_rest(lines, at, &head),
                }
            })
        })
        .collect();
    found.reverse();
    found
}

fn part<'t>(found: &Captures<'t>, group: usize) -> &'t [u8] {
    found.get(group).map_or(&[], |part| part.as_bytes())
}

fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The lines of the same rank below, with their places.
fn below<'a>(lines: &'a [Line<'a>], at: usize) -> impl Iterator<Item = (usize, &'a [u8])> + Clone {
    let rank = lines[at].rank;
    lines[at..]
        .iter()
        .enumerate()
        .skip(1)
        .take(MAX_LINES_PER_CRASH)
        .filter(move |(_, line)| line.rank == rank)
        .map(move |(down, line)| (at + down, line.text()))
}

fn crash(
    form: Form,
    lines: &[Line],
    range: Range<usize>,
    message: &[u8],
    place: Option<Place>,
) -> Crash {
    let error = LogError {
        rank: lines[range.start].rank,
        place,
        ..LogError::new(form, printable(message, MAX_LINE_CHARACTERS_SHOWN))
    };
    Crash {
        lines: range,
        error,
    }
}

fn place(file: &[u8], line: &[u8], function: &[u8]) -> Place {
    let function =
        Some(printable(function, MAX_LINE_CHARACTERS_SHOWN)).filter(|text| !text.is_empty());
    Place {
        file: printable(file, MAX_LINE_CHARACTERS_SHOWN),
        line: number(line),
        function,
        source: None,
    }
}

fn one_line(lines: &[Line], at: usize, found: &Captures) -> Crash {
    crash(Form::Crash, lines, at..at + 1, part(found, 1), None)
}

/// faulthandler prints the threads one after the other, each with the deepest call first.
fn fatal_python(lines: &[Line], at: usize, found: &Captures) -> Crash {
    let mut calls: Vec<Frame> = Vec::new();
    let (mut current, mut end) = (false, at + 1);
    for (number, text) in below(lines, at) {
        let is_thread = text.ends_with(b"(most recent call first):");
        let call = frame(text);
        if call.is_none()
            && !is_thread
            && !text.starts_with(b"Python runtime state")
            && !text.trim_ascii_start().starts_with(b"<no Python frame>")
        {
            break;
        }
        end = number + 1;
        if is_thread {
            current = text.starts_with(b"Current thread");
        }
        calls.extend(call.filter(|_| current));
    }
    calls.reverse();
    let message = [b"Fatal Python error: ", part(found, 1)].concat();
    crash(
        Form::Crash,
        lines,
        at..end,
        &message,
        own(calls.iter()).map(Frame::place),
    )
}

fn cpp(lines: &[Line], at: usize, found: &Captures) -> Crash {
    let what = below(lines, at).take(3).find_map(|(number, text)| {
        Some((
            number,
            text.trim_ascii_start()
                .strip_prefix(b"what():")?
                .trim_ascii(),
        ))
    });
    let Some((end, what)) = what else {
        return one_line(lines, at, found);
    };
    crash(
        Form::Crash,
        lines,
        at..end + 1,
        &[part(found, 1), b": ", what].concat(),
        None,
    )
}

fn c_assertion(lines: &[Line], at: usize, found: &Captures) -> Crash {
    crash(
        Form::Crash,
        lines,
        at..at + 1,
        part(found, 1),
        Some(place(part(found, 2), part(found, 3), part(found, 4))),
    )
}

/// Since Rust 1.73 the message stands on the line below.
fn rust(lines: &[Line], at: usize, found: &Captures) -> Option<Crash> {
    let (end, message) = below(lines, at).next()?;
    Some(crash(
        Form::Panic,
        lines,
        at..end + 1,
        &[b"panicked: ", message].concat(),
        Some(place(part(found, 1), part(found, 2), b"")),
    ))
}

fn old_rust(lines: &[Line], at: usize, found: &Captures) -> Crash {
    crash(
        Form::Panic,
        lines,
        at..at + 1,
        &[b"panicked: ", part(found, 1)].concat(),
        Some(place(part(found, 2), part(found, 3), b"")),
    )
}

/// A goroutine's calls: the function on one line, its file, indented by a tab, on the next.
fn go(lines: &[Line], at: usize, found: &Captures) -> Option<Crash> {
    static FILE: OnceLock<Regex> = OnceLock::new();
    let file = compiled(&FILE, r"^\t(\S.*\.go):(\d+)(?: \+0x[0-9a-f]+)?$");
    below(lines, at)
        .take(30)
        .find(|(_, text)| text.starts_with(b"goroutine "))?;
    let (mut function, mut shown, mut end): (&[u8], Option<Place>, usize) = (b"", None, at + 1);
    for (number, text) in below(lines, at) {
        end = number + 1;
        let Some(call) = file.captures(text) else {
            function = text;
            continue;
        };
        let is_foreign = ["/go/src/", "/pkg/mod/", "/vendor/"].iter().any(|folder| {
            part(&call, 1)
                .windows(folder.len())
                .any(|part| part == folder.as_bytes())
        });
        if shown.is_none() && !is_foreign {
            let name = function
                .iter()
                .rposition(|byte| *byte == b'(')
                .map_or(function, |end| &function[..end]);
            shown = Some(place(part(&call, 1), part(&call, 2), name));
        }
    }
    Some(crash(Form::Panic, lines, at..end, part(found, 1), shown))
}

/// The last `Caused by:` is the root; its first call outside of Java's own packages is shown.
fn java(lines: &[Line], at: usize, found: &Captures) -> Crash {
    static CALL: OnceLock<Regex> = OnceLock::new();
    static FOREIGN: OnceLock<Regex> = OnceLock::new();
    let call = compiled(
        &CALL,
        r"^\s+at (?:[\w.@-]+/)?([\w.$<>]+)\(([\w$]+\.\w+):(\d+)\)$",
    );
    let foreign = compiled(
        &FOREIGN,
        r"^(?:java|javax|jdk|sun|com\.sun|scala|kotlin|org\.apache|org\.springframework)\.",
    );
    let (mut message, mut shown, mut end) = (part(found, 1), None, at + 1);
    for (number, text) in below(lines, at) {
        let cause = text.strip_prefix(b"Caused by: ");
        if cause.is_none() && !text.first().is_some_and(u8::is_ascii_whitespace) {
            break;
        }
        end = number + 1;
        if let Some(cause) = cause {
            (message, shown) = (cause, None);
        }
        if let Some(call) = call
            .captures(text)
            .filter(|call| shown.is_none() && !foreign.is_match(part(call, 1)))
        {
            shown = Some(place(part(&call, 2), part(&call, 3), part(&call, 1)));
        }
    }
    crash(Form::Exception, lines, at..end, message, shown)
}

fn javascript(lines: &[Line], at: usize, found: &Captures) -> Option<Crash> {
    static CALL: OnceLock<Regex> = OnceLock::new();
    let call = compiled(
        &CALL,
        r"^\s+at (?:(.+?) \()?(?:file://)?([^():]+|\w:[^():]+):(\d+):\d+\)?$",
    );
    let calls =
        below(lines, at).take_while(|(_, text)| text.trim_ascii_start().starts_with(b"at "));
    let end = calls.clone().last()?.0 + 1;
    let is_own = |file: &[u8]| {
        !file.starts_with(b"node:") && !file.windows(14).any(|part| part == b"/node_modules/")
    };
    let shown = calls
        .filter_map(|(_, text)| call.captures(text))
        .find(|call| is_own(part(call, 2)));
    Some(crash(
        Form::Exception,
        lines,
        at..end,
        part(found, 1),
        shown.map(|call| place(part(&call, 2), part(&call, 3), part(&call, 1))),
    ))
}

fn julia(lines: &[Line], at: usize, found: &Captures) -> Option<Crash> {
    static CALL: OnceLock<Regex> = OnceLock::new();
    let call = compiled(&CALL, r"@ \w+ ([^\s:]+\.jl):(\d+)$");
    let (trace, _) = below(lines, at)
        .take(10)
        .find(|(_, text)| *text == b"Stacktrace:")?;
    let shown = below(lines, trace)
        .filter_map(|(_, text)| call.captures(text))
        .find(|call| {
            !part(call, 1).windows(7).any(|part| part == b".julia/")
                && !part(call, 1).starts_with(b"./")
        });
    let end = below(lines, trace)
        .take_while(|(_, text)| text.starts_with(b" ") || text.starts_with(b"in expression"))
        .last()
        .map_or(trace, |(last, _)| last)
        + 1;
    Some(crash(
        Form::Exception,
        lines,
        at..end,
        part(found, 1),
        shown.map(|call| place(part(&call, 1), part(&call, 2), b"")),
    ))
}

/// R breaks a long message after the colon.
fn r(lines: &[Line], at: usize, found: &Captures) -> Option<Crash> {
    let (halted, _) = below(lines, at)
        .take(20)
        .find(|(_, text)| *text == b"Execution halted")?;
    let rest = below(lines, at)
        .next()
        .filter(|(_, text)| text.starts_with(b"  "))
        .map_or(&[][..], |(_, text)| text.trim_ascii());
    Some(crash(
        Form::Exception,
        lines,
        at..halted + 1,
        &[part(found, 1), b" ", rest].concat(),
        None,
    ))
}

/// The first of the tests that failed, as pytest sums them up at its end.
fn pytest(lines: &[Line], at: usize, found: &Captures) -> Option<Crash> {
    static SUM: OnceLock<Regex> = OnceLock::new();
    let sum = compiled(&SUM, r"^(?:=+ )?\d+ failed\b.* in [\d.]+s");
    let (end, _) = below(lines, at).find(|(_, text)| sum.is_match(text))?;
    let is_first = at == 0 || !lines[at - 1].text().starts_with(b"FAILED ");
    is_first.then(|| {
        crash(
            Form::ErrorLine,
            lines,
            at..end + 1,
            &[b"FAILED ", part(found, 1)].concat(),
            None,
        )
    })
}
