//! Some lines of a log that follow one another, and its newest bytes as they come. Bounded, whatever
//! a job writes: lines that are far away are asked for again when somebody looks there.

use super::event::FoundLines;
use crate::ansi::folded;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::VecDeque;
use towline_wire::api::stream::LogPart;

pub(crate) const MAX_LINES: usize = 4000;
const MAX_BYTES: usize = 4 << 20;
/// A longer line is cut: nobody reads on so far to the right.
const MAX_LINE_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct LogLines {
    /// The number of the first line that is kept, from 0.
    pub(crate) first: u64,
    lines: VecDeque<String>,
    bytes: usize,
    /// The offset behind the last line.
    end: u64,
    /// The number of lines of the whole log, as far as it is known.
    pub(crate) total: u64,
    /// The last line has no end yet.
    is_open: bool,
    /// The last line that is kept is the last of the log.
    pub(crate) reaches_end: bool,
    /// The begin of a character whose other bytes have not come yet.
    unfinished: Vec<u8>,
}

/// Why bytes were not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    /// They do not follow what is here.
    Gap,
}

impl LogLines {
    /// Takes lines in place of all that were here. Those from `looked_at` on are not given up.
    pub(crate) fn set(&mut self, found: FoundLines, looked_at: Option<u64>) {
        *self = Self {
            first: found.first,
            end: found.end,
            total: found.total,
            is_open: found.is_open,
            reaches_end: found.first + found.lines.len() as u64 >= found.total,
            ..Self::default()
        };
        for line in found.lines {
            self.push(&line);
        }
        self.bound(looked_at.unwrap_or(u64::MAX));
    }

    pub(crate) fn len(&self) -> u64 {
        self.lines.len() as u64
    }

    /// The number behind the last line that is kept.
    pub(crate) fn behind(&self) -> u64 {
        self.first + self.len()
    }

    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn line(&self, number: u64) -> Option<&str> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.lines.get(place).map(String::as_str)
    }

    /// Takes bytes that were added to the log. Lines from `looked_at` on are not given up; if there
    /// is no room, the end of the log is given up instead.
    pub(crate) fn take(&mut self, part: &LogPart, looked_at: Option<u64>) -> Taken {
        if !self.reaches_end || part.offset + part.length <= self.end {
            return Taken::Yes;
        }
        let Some(known) = self.end.checked_sub(part.offset) else {
            return Taken::Gap;
        };
        let Some(bytes) = bytes_of(part) else {
            return Taken::Gap;
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        self.end = part.offset + part.length;
        self.append(bytes.get(known..).unwrap_or_default());
        self.bound(looked_at.unwrap_or(u64::MAX));
        Taken::Yes
    }

    fn append(&mut self, bytes: &[u8]) {
        let text = self.text_of(bytes);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, is_ended, after) = match rest.split_once('\n') {
                Some((line, after)) => (line, true, after),
                None => (rest, false, ""),
            };
            if self.is_open && !self.lines.is_empty() {
                self.extend_last(line);
            } else {
                self.total += 1;
                self.push(line);
            }
            self.is_open = !is_ended;
            rest = after;
        }
    }

    /// The bytes as text. The begin of a character waits for its other bytes.
    fn text_of(&mut self, bytes: &[u8]) -> String {
        let mut whole = std::mem::take(&mut self.unfinished);
        whole.extend_from_slice(bytes);
        if let Err(error) = std::str::from_utf8(&whole) {
            let is_at_end = whole.len() - error.valid_up_to() < 4;
            if error.error_len().is_none() && is_at_end {
                self.unfinished = whole.split_off(error.valid_up_to());
            }
        }
        String::from_utf8_lossy(&whole).into_owned()
    }

    fn push(&mut self, line: &str) {
        let line = bounded(folded_but_end(line));
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
    }

    fn extend_last(&mut self, more: &str) {
        let Some(last) = self.lines.back_mut() else {
            return;
        };
        self.bytes -= last.len();
        if last.len() < MAX_LINE_BYTES || more.contains('\r') {
            last.push_str(more);
            *last = bounded(folded_but_end(last)).to_owned();
        }
        self.bytes += last.len();
    }

    fn bound(&mut self, looked_at: u64) {
        while (self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES) && self.lines.len() > 1 {
            let removed = if self.first < looked_at {
                self.first += 1;
                self.lines.pop_front()
            } else {
                self.reaches_end = false;
                self.lines.pop_back()
            };
            self.bytes -= removed.map_or(0, |line| line.len());
        }
    }
}

/// As [`folded`], but a return at the end stays: what comes next is drawn over this line.
fn folded_but_end(line: &str) -> &str {
    let kept = folded(line);
    if !line.ends_with('\r') {
        return kept;
    }
    let begin = line.trim_end_matches('\r').len() - kept.len();
    &line[begin..=begin + kept.len()]
}

fn bounded(line: &str) -> &str {
    let mut end = line.len().min(MAX_LINE_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

fn bytes_of(part: &LogPart) -> Option<Vec<u8>> {
    match (&part.text, &part.base64) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(base64)) => STANDARD.decode(base64).ok(),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use towline_core::RunId;
    use towline_core::cluster::LogSource;
    use towline_wire::api::log::LogRef;

    fn part(offset: u64, bytes: &[u8]) -> LogPart {
        let run = RunId::new("a", 1, 1);
        LogPart {
            log: LogRef::new(&run, 1, LogSource::Rank(0)),
            offset,
            length: bytes.len() as u64,
            text: None,
            base64: Some(STANDARD.encode(bytes)),
        }
    }

    fn empty() -> LogLines {
        let mut lines = LogLines::default();
        lines.set(FoundLines::default(), None);
        lines
    }

    fn shown(lines: &LogLines) -> Vec<&str> {
        lines.lines.iter().map(|line| folded(line)).collect()
    }

    #[test]
    fn bytes_become_lines_and_bars_are_folded() {
        let mut lines = empty();
        let mut offset = 0;
        for bytes in ["one\ntw", "o\n10%\r", "20%", "\r30%", "\r\nend"] {
            assert_eq!(
                lines.take(&part(offset, bytes.as_bytes()), None),
                Taken::Yes
            );
            offset += bytes.len() as u64;
        }
        assert_eq!(shown(&lines), ["one", "two", "30%", "end"]);
        assert_eq!((lines.total, lines.end()), (4, offset));
    }

    #[test]
    fn what_came_before_is_left_out_and_what_is_missing_is_noticed() {
        let mut lines = empty();
        lines.take(&part(0, b"one\n"), None);
        assert_eq!(lines.take(&part(2, b"e\ntwo\n"), None), Taken::Yes);
        assert_eq!(shown(&lines), ["one", "two"]);
        assert_eq!(lines.take(&part(0, b"one\n"), None), Taken::Yes);
        assert_eq!(lines.take(&part(20, b"late"), None), Taken::Gap);
        assert_eq!(shown(&lines), ["one", "two"]);
    }

    #[test]
    fn lines_that_somebody_looks_at_stay() {
        let mut lines = empty();
        let numbers: Vec<String> = (0..MAX_LINES + 10).map(|n| n.to_string()).collect();
        let many = numbers.join("\n") + "\n";
        lines.take(&part(0, many.as_bytes()), None);
        assert_eq!((lines.first, lines.len()), (10, MAX_LINES as u64));
        assert!(lines.reaches_end);
        let mut lines = empty();
        lines.take(&part(0, many.as_bytes()), Some(4));
        assert_eq!((lines.first, lines.line(4)), (4, Some("4")));
        assert!(!lines.reaches_end);
        assert_eq!(lines.total, MAX_LINES as u64 + 10);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_lines(
            text in "([a-c€\\r]{0,6}\\n?){0,6}", size in 1..5_usize
        ) {
            let mut whole = empty();
            whole.take(&part(0, text.as_bytes()), None);
            let mut pieces = empty();
            for (number, piece) in text.as_bytes().chunks(size).enumerate() {
                pieces.take(&part((number * size) as u64, piece), None);
            }
            prop_assert_eq!(shown(&whole), shown(&pieces));
            prop_assert_eq!(whole.total, pieces.total);
        }

        #[test]
        fn memory_is_bounded(parts in proptest::collection::vec("[a\\r\\n]{0,40000}", 0..4)) {
            let mut lines = empty();
            let mut offset = 0;
            for text in parts {
                lines.take(&part(offset, text.as_bytes()), None);
                offset += text.len() as u64;
                prop_assert!(lines.lines.iter().all(|line| line.len() <= MAX_LINE_BYTES));
                prop_assert!(lines.lines.len() <= MAX_LINES);
                let kept: usize = lines.lines.iter().map(String::len).sum();
                prop_assert_eq!(kept, lines.bytes);
            }
        }
    }
}
