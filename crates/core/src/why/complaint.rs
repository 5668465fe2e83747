//! Messages in one line that no rule knows: a wrong option, a shell's complaint, a compiler's
//! error, a line that says "error".

use super::lines::{Kind, Line, compiled, printable};
use super::{Form, LogError, MAX_LINE_CHARACTERS_SHOWN, Place};
use regex::bytes::Regex;
use std::sync::OnceLock;

/// How far above its error a program may show its usage.
const MAX_USAGE_LINES: usize = 80;

/// A wrong option, or a shell's complaint. It ends a program only as its last line.
pub(super) fn complaint(lines: &[Line], at: usize) -> Option<LogError> {
    usage(lines, at).or_else(|| shell(&lines[at]))
}

fn usage(lines: &[Line], at: usize) -> Option<LogError> {
    static ARGPARSE: OnceLock<Regex> = OnceLock::new();
    static CLICK: OnceLock<Regex> = OnceLock::new();
    static WITHOUT_USAGE: OnceLock<Regex> = OnceLock::new();
    let text = lines[at].text();
    let above = |word: &[u8], most: usize| {
        lines[at.saturating_sub(most)..at]
            .iter()
            .any(|line| line.rank == lines[at].rank && line.text().starts_with(word))
    };
    let is_complaint = (compiled(&ARGPARSE, r"^\S+(?: [\w-]+)*: error: .").is_match(text)
        && above(b"usage: ", MAX_USAGE_LINES))
        || (compiled(&CLICK, r"^Error: .").is_match(text) && above(b"Usage: ", 8))
        || compiled(&WITHOUT_USAGE, WITHOUT_USAGE_PATTERN).is_match(text);
    is_complaint.then(|| LogError {
        rank: lines[at].rank,
        ..LogError::new(Form::Usage, printable(text, MAX_LINE_CHARACTERS_SHOWN))
    })
}

/// getopt, absl and Hydra show no usage above it.
const WITHOUT_USAGE_PATTERN: &str = concat!(
    r"^\S+: (?:unrecognized option|invalid option --|unknown option|option requires an argument)|^FATAL Flags parsing error:",
    r"|^(?:Could not override '|Cannot find primary config '|Key '[^']+' is not in struct|Error merging override )",
);

/// `job.sh: line 7: NAME: unbound variable`. The second line of a syntax error only quotes the
/// script.
fn shell(line: &Line) -> Option<LogError> {
    static SHELL: OnceLock<Regex> = OnceLock::new();
    let pattern = r"^([^\s:]*(?:sh|/[^\s:]+)): (?:-c: )?(?:line )?(\d{1,7}): [^`]";
    let found = compiled(&SHELL, pattern).captures(line.text())?;
    let file = found.get(1)?.as_bytes();
    let number = std::str::from_utf8(found.get(2)?.as_bytes())
        .ok()
        .and_then(|digits| digits.parse().ok());
    // `sh -c` has no file whose line could be shown.
    let place = (file.ends_with(b".sh") || !file.ends_with(b"sh")).then(|| Place {
        file: printable(file, MAX_LINE_CHARACTERS_SHOWN),
        line: number,
        function: None,
        source: None,
    });
    Some(LogError {
        rank: line.rank,
        place,
        ..LogError::new(
            Form::Shell,
            printable(line.text(), MAX_LINE_CHARACTERS_SHOWN),
        )
    })
}

/// A compiler's error, with the place it names. The first one is shown, because the others often
/// follow from it.
pub(super) fn compiler(line: &Line) -> Option<LogError> {
    static ERROR: OnceLock<Regex> = OnceLock::new();
    let found = compiled(
        &ERROR,
        r"^([^\s:()]+\.\w+)(?:\((\d+)\)|:(\d+)(?::\d+)?): (?:fatal )?error:? ",
    )
    .captures(line.text())?;
    let digits = found.get(2).or_else(|| found.get(3))?.as_bytes();
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok());
    let place = Place {
        file: printable(found.get(1)?.as_bytes(), MAX_LINE_CHARACTERS_SHOWN),
        line: number,
        function: None,
        source: None,
    };
    Some(LogError {
        rank: line.rank,
        place: Some(place),
        ..LogError::new(
            Form::ErrorLine,
            printable(line.text(), MAX_LINE_CHARACTERS_SHOWN),
        )
    })
}

/// A line that calls itself an error, and does not only report that a program ended.
pub(super) fn error_line(line: &Line, kind: Kind) -> Option<LogError> {
    static ERROR: OnceLock<Regex> = OnceLock::new();
    static REPORT: OnceLock<Regex> = OnceLock::new();
    let text = line.text();
    let is_error = !matches!(kind, Kind::Bar | Kind::GoingOn)
        && compiled(&ERROR, ERROR_PATTERN).is_match(text)
        && !compiled(&REPORT, REPORT_PATTERN).is_match(text);
    is_error.then(|| LogError {
        rank: line.rank,
        ..LogError::new(Form::ErrorLine, printable(text, MAX_LINE_CHARACTERS_SHOWN))
    })
}

const ERROR_PATTERN: &str = concat!(
    r"^(?:\S+: )?(?:[Ee]rror|ERROR|[Ff]atal(?: error)?|FATAL|CRITICAL|[Ee]xception|panic)(?::|\]|!)",
    r"|^[\w.]*(?:Error|Exception): \S|^\[?\d[\d/:T., -]{6,}.{0,60}?[\s\[|(-](?:ERROR|FATAL|CRITICAL)\b",
    r"|^\[(?:ERROR|FATAL|CRITICAL|error)\]|^(?:ERROR|CRITICAL):\w|^E: \S|^curl: \(\d+\) |^\S+: Error response from daemon",
);

const REPORT_PATTERN: &str = concat!(
    r"Exited with exit code \d|: tasks? [\d,-]+: (?:Killed|Terminated|Aborted)|STEP \S+ ON \S+ CANCELLED|^make(?:\[\d+\])?: ",
    r"|^ninja: build stopped|torch[/.]distributed[/.]elastic|exits with return code|dependency resolver does not currently",
);
