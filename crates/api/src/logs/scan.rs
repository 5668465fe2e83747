//! Counts the lines of a log, and remembers where some of them begin.

use super::index::LINES_PER_MARK;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const CHUNK_BYTES: usize = 256 << 10;

/// How far a log was counted.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// The offsets of lines 0, 1024, 2048, …
    marks: Vec<u64>,
    /// The number of ends of lines.
    ends: u64,
    /// The number of bytes.
    bytes: u64,
    /// The last byte was not the end of a line.
    is_open: bool,
}

impl Scanner {
    /// The number of lines, an unfinished last one included.
    pub(super) fn lines(&self) -> u64 {
        self.ends + u64::from(self.is_open)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Counts the bytes up to `length`.
    pub(super) fn go_on(&mut self, file: &File, length: u64) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.bytes < length {
            let most = usize::try_from(length - self.bytes)
                .unwrap_or(CHUNK_BYTES)
                .min(CHUNK_BYTES);
            let count = file.read_at(&mut chunk[..most], self.bytes)?;
            if count == 0 {
                break;
            }
            self.count(&chunk[..count]);
        }
        Ok(())
    }

    fn count(&mut self, chunk: &[u8]) {
        if self.marks.is_empty() && !chunk.is_empty() {
            self.marks.push(0);
        }
        for place in memchr::memchr_iter(b'\n', chunk) {
            self.ends += 1;
            if self.ends.is_multiple_of(LINES_PER_MARK) {
                self.marks.push(self.bytes + place as u64 + 1);
            }
        }
        self.bytes += chunk.len() as u64;
        self.is_open = chunk.last().map_or(self.is_open, |last| *last != b'\n');
    }

    /// The offset at which a line begins; the end of the log for a line behind the last.
    pub(super) fn offset_of(&self, file: &File, line: u64) -> io::Result<u64> {
        if line >= self.lines() {
            return Ok(self.bytes);
        }
        let mark = usize::try_from(line / LINES_PER_MARK).unwrap_or(usize::MAX);
        let (mut offset, mut left) = (self.marks[mark], line % LINES_PER_MARK);
        let mut chunk = vec![0; CHUNK_BYTES.min(64 << 10)];
        while left > 0 {
            let count = file.read_at(&mut chunk, offset)?;
            if count == 0 {
                break;
            }
            for place in memchr::memchr_iter(b'\n', &chunk[..count]) {
                left -= 1;
                if left == 0 {
                    return Ok(offset + place as u64 + 1);
                }
            }
            offset += count as u64;
        }
        Ok(offset)
    }

    /// The number of the line that holds a byte.
    pub(super) fn line_of(&self, file: &File, byte: u64) -> io::Result<u64> {
        if byte >= self.bytes {
            return Ok(self.lines());
        }
        let mark = self.marks.partition_point(|begin| *begin <= byte) - 1;
        let (mut offset, mut line) = (self.marks[mark], mark as u64 * LINES_PER_MARK);
        let mut chunk = vec![0; 64 << 10];
        while offset < byte {
            let most = usize::try_from(byte - offset)
                .unwrap_or(usize::MAX)
                .min(chunk.len());
            let count = file.read_at(&mut chunk[..most], offset)?;
            if count == 0 {
                break;
            }
            line += memchr::memchr_iter(b'\n', &chunk[..count]).count() as u64;
            offset += count as u64;
        }
        Ok(line)
    }
}
