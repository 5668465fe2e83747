//! Lines of a log as text.

use super::scan::Scanner;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use towline_wire::api::log::Lines;

/// The part of a line that is sent at most. Who wants all of it downloads the log.
const MAX_LINE_BYTES: usize = 64 << 10;
/// An answer is not longer than about this: fewer lines are sent, if they are long.
const MAX_ANSWER_BYTES: usize = 4 << 20;
const CHUNK_BYTES: usize = 128 << 10;

/// The lines that are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The number of the first line.
    pub(super) first: u64,
    /// The offset at which it begins.
    pub(super) begin: u64,
    pub(super) count: u64,
}

pub(super) fn read(file: &File, scanner: &Scanner, window: Window) -> io::Result<Lines> {
    let mut reader = Reader {
        lines: Lines {
            first: window.first,
            begin: window.begin,
            end: window.begin,
            total: scanner.lines(),
            bytes: scanner.bytes(),
            is_open: scanner.is_open(),
            ..Lines::default()
        },
        line: Vec::new(),
        length: 0,
        sent: 0,
        wanted: window.count,
    };
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut offset = window.begin;
    while !reader.is_full() && offset < scanner.bytes() {
        let most = usize::try_from(scanner.bytes() - offset)
            .unwrap_or(CHUNK_BYTES)
            .min(CHUNK_BYTES);
        let count = file.read_at(&mut chunk[..most], offset)?;
        if count == 0 {
            break;
        }
        reader.take(&chunk[..count]);
        offset += count as u64;
    }
    if !reader.is_full() && reader.length > 0 {
        reader.end_line(0);
    }
    Ok(reader.lines)
}

struct Reader {
    lines: Lines,
    /// The line so far, cut at [`MAX_LINE_BYTES`].
    line: Vec<u8>,
    /// Its bytes so far.
    length: u64,
    sent: usize,
    wanted: u64,
}

impl Reader {
    fn is_full(&self) -> bool {
        self.lines.lines.len() as u64 >= self.wanted || self.sent >= MAX_ANSWER_BYTES
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_full() {
            let end = memchr::memchr(b'\n', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            self.length += part.len() as u64;
            if end.is_some() {
                self.end_line(1);
            }
            bytes = &bytes[part.len() + usize::from(end.is_some())..];
        }
    }

    fn end_line(&mut self, end_bytes: u64) {
        if self.length > self.line.len() as u64 {
            let number = self.lines.first + self.lines.lines.len() as u64;
            self.lines.cut.push(number);
        }
        self.sent += self.line.len();
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.lines.lines.push(text);
        self.lines.end += self.length + end_bytes;
        self.line.clear();
        self.length = 0;
    }
}
