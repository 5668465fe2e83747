//! Searches a log from its begin to its end, line by line, whatever its size.

use crate::cancel::Cancel;
use regex::bytes::{Regex, RegexBuilder};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use towline_core::{Error, Result};
use towline_wire::api::log::{LogsSearch, Matches};

const DEFAULT_LIMIT: u32 = 1000;
const MAX_LIMIT: u32 = 10_000;
const MAX_PATTERN_BYTES: usize = 4096;
/// The memory of a compiled expression.
const EXPRESSION_BYTES: usize = 4 << 20;
const CHUNK_BYTES: usize = 1 << 20;
/// Longer lines are searched in parts.
const MAX_LINE_BYTES: usize = 8 << 20;

/// What shows an error in the logs of training programs: how Python, shells, CUDA, C++, Rust and Go
/// begin to tell of one.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"Traceback \(most recent call last\)",
        r"|^(?:\[?rank ?\d+\]?:? ?)?[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b(?::|$)",
        r"|^(?:.*\s)?(?:FATAL|CRITICAL)\b|\b(?:CUDA|NCCL) (?:error|failure)|CUDA out of memory",
        r"|\b[Ss]egmentation fault|^(?:\S*(?:bash|sh|srun|slurmstepd|python3?|torchrun)): .*\b(?:error|not found|denied|No such)\b",
        r"|^thread '.*' panicked at|^panic: |terminate called after|^Killed$|\boom-kill\b|^(?:ERROR|[Ee]rror)\b[: ]",
    ))
    .ok()
});

/// The expression that a question asks for.
pub(super) fn pattern(ask: &LogsSearch) -> Result<Regex> {
    if ask.pattern.is_empty() {
        return Err(Error::usage("there is nothing to search for"));
    }
    if ask.pattern.len() > MAX_PATTERN_BYTES {
        return Err(Error::usage("the text to search for is too long")
            .hint(format!("at most {MAX_PATTERN_BYTES} bytes")));
    }
    let text = if ask.regex {
        ask.pattern.clone()
    } else {
        regex::escape(&ask.pattern)
    };
    RegexBuilder::new(&text)
        .case_insensitive(!ask.case)
        .size_limit(EXPRESSION_BYTES)
        .build()
        .map_err(|error| {
            let last = error.to_string();
            let last = last.lines().last().unwrap_or_default();
            Error::usage(format!(
                "`{}` is not a regular expression: {}",
                ask.pattern,
                last.trim_start_matches("error: ")
            ))
        })
}

/// How often and where it matches.
pub(super) fn all(
    file: &File,
    pattern: &Regex,
    limit: Option<u32>,
    cancel: &Cancel,
) -> io::Result<Matches> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT) as usize;
    let mut matches = Matches::default();
    matches.searched = each_line(file, cancel, |number, line| {
        if pattern.is_match(line) {
            matches.count += 1;
            if matches.lines.len() < limit {
                matches.lines.push(number);
            }
        }
        true
    })?;
    Ok(matches)
}

/// The number of the first line that shows an error.
pub(super) fn first_error(file: &File, cancel: &Cancel) -> io::Result<Option<u64>> {
    let mut found = None;
    if let Some(error) = &*ERROR {
        each_line(file, cancel, |number, line| {
            if error.is_match(line) {
                found = Some(number);
            }
            found.is_none()
        })?;
    }
    Ok(found)
}

/// Calls `look` with the number and the bytes of each line, until it says `false`. Returns the
/// number of lines that were looked at.
fn each_line(
    file: &File,
    cancel: &Cancel,
    mut look: impl FnMut(u64, &[u8]) -> bool,
) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut held, mut offset, mut number) = (0, 0, 0);
    loop {
        if cancel.is_cancelled() {
            return Ok(number);
        }
        if held == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        let count = file.read_at(&mut buffer[held..], offset)?;
        offset += count as u64;
        let bytes = &buffer[..held + count];
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if !look(number, &bytes[begin..end]) {
                return Ok(number + 1);
            }
            number += 1;
            begin = end + 1;
        }
        let rest = bytes.len() - begin;
        if count == 0 {
            if rest > 0 {
                look(number, &bytes[begin..]);
                number += 1;
            }
            return Ok(number);
        }
        if rest >= MAX_LINE_BYTES {
            // The line goes on; what is behind this part is searched as if it began there.
            if !look(number, &bytes[begin..]) {
                return Ok(number + 1);
            }
            held = 0;
        } else {
            buffer.copy_within(begin..begin + rest, 0);
            held = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use towline_core::RunId;
    use towline_core::cluster::LogSource;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("it is written");
        file
    }

    fn ask(pattern: &str, regex: bool, case: bool) -> LogsSearch {
        LogsSearch {
            run: RunId::try_from("job-1-00000000".to_owned()).expect("an id"),
            attempt: 1,
            source: LogSource::Rank(0),
            pattern: pattern.into(),
            regex,
            case,
            limit: Some(2),
        }
    }

    fn find(bytes: &[u8], ask: &LogsSearch) -> Matches {
        let (_canceller, cancel) = crate::cancel::pair().expect("sockets");
        let pattern = pattern(ask).expect("an expression");
        all(&file(bytes), &pattern, ask.limit, &cancel).expect("it is searched")
    }

    #[test]
    fn text_is_text_and_an_expression_one_line() {
        let log = b"Loss 0.5\nloss (0.4)\n\nLOSS 0.3\nend";
        let found = find(log, &ask("loss", false, false));
        assert_eq!(
            (found.count, &*found.lines, found.searched),
            (3, &[0, 1][..], 5)
        );
        assert_eq!(find(log, &ask("loss (", false, true)).lines, [1]);
        assert_eq!(find(log, &ask(r"^loss \(", true, true)).lines, [1]);
        assert_eq!(find(log, &ask(r"0\.5\sloss", true, true)).count, 0);
        assert_eq!(find(log, &ask("^end$", true, true)).lines, [4]);
    }

    #[test]
    fn lines_longer_than_what_is_read_at_once_are_whole() {
        let mut log = vec![b'a'; 3 << 20];
        log.extend_from_slice(b" needle\nnext needle\n");
        let found = find(&log, &ask("a needle", false, true));
        assert_eq!((&*found.lines, found.searched), (&[0][..], 2));
    }

    #[test]
    fn a_wrong_expression_says_why() {
        let error = pattern(&ask("a(", true, true)).expect_err("it is wrong");
        assert_eq!(
            error.message(),
            "`a(` is not a regular expression: unclosed group"
        );
        assert!(pattern(&ask("", false, true)).is_err());
        assert!(pattern(&ask(&"(a{1000}){1000}".repeat(2), true, true)).is_err());
    }

    #[test]
    fn the_first_error_is_found_and_progress_is_none() {
        let (_canceller, cancel) = crate::cancel::pair().expect("sockets");
        let first = |text: &str| first_error(&file(text.as_bytes()), &cancel).expect("searched");
        assert_eq!(first("epoch 1 error 0.2\nmean error: 0.1\n"), None);
        for error in [
            "Traceback (most recent call last):",
            "RuntimeError: CUDA error: device-side assert triggered",
            "torch.OutOfMemoryError: CUDA out of memory.",
            "bash: line 1: nvcc: command not found",
            "Segmentation fault (core dumped)",
            "thread 'main' panicked at src/main.rs:1:1:",
            "KeyboardInterrupt",
            "2026-01-01 00:00:00 CRITICAL no data",
            "ERROR: it failed",
        ] {
            assert_eq!(first(&format!("fine\n{error}\nmore\n")), Some(1), "{error}");
        }
    }
}
