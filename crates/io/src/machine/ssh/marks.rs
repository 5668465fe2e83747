//! Marks that separate a command's own output from that of the shell before it.

use crate::random::token;
use std::io::{BufRead, BufReader, Read};
use towline_core::Result;

/// Bytes that a login profile may print before the command begins.
const MAX_NOISE_BYTES: usize = 1 << 20;

/// Two random tokens. In this order they mark the beginning of a command, in the other order an
/// exit code 255 of its own.
#[derive(Debug)]
pub(super) struct Marks {
    pub(super) first: String,
    pub(super) second: String,
}

impl Marks {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            first: token()?,
            second: token()?,
        })
    }
    pub(super) fn begin(&self) -> Vec<u8> {
        format!("{}{}", self.first, self.second).into_bytes()
    }
    pub(super) fn end(&self) -> Vec<u8> {
        format!("{}{}", self.second, self.first).into_bytes()
    }

    /// The command's own part of stderr, and whether an exit code 255 was its own.
    pub(super) fn own_stderr(&self, mut stderr: Vec<u8>) -> (Vec<u8>, bool) {
        if let Some(at) = find(&stderr, &self.begin()) {
            stderr.drain(..at + self.begin().len());
        }
        let end = find(&stderr, &self.end());
        if let Some(at) = end {
            stderr.drain(at..at + self.end().len());
        }
        (stderr, end.is_some())
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// The output after the mark; if there is no mark, the error is all the output there was.
pub(super) fn skip_to_mark<R: Read>(
    mut output: BufReader<R>,
    mark: &[u8],
) -> Result<BufReader<R>, Vec<u8>> {
    let mut noise = Vec::new();
    loop {
        let (used, is_there) = match output.fill_buf() {
            Ok(piece) if !piece.is_empty() && noise.len() < MAX_NOISE_BYTES => {
                // The mark may have begun in what came before.
                let from = noise.len().saturating_sub(mark.len() - 1);
                noise.extend_from_slice(piece);
                match find(&noise[from..], mark) {
                    Some(at) => (piece.len() - (noise.len() - (from + at + mark.len())), true),
                    None => (piece.len(), false),
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (0, false),
            _ => return Err(noise),
        };
        output.consume(used);
        if is_there {
            return Ok(output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_begins_after_the_mark_wherever_that_is_cut() {
        for text in ["MARKout", "hello\nMARKout", "MAMARMARKout", "MARK"] {
            for size in 1..=text.len() {
                let mut left = String::new();
                skip_to_mark(BufReader::with_capacity(size, text.as_bytes()), b"MARK")
                    .expect("it is there")
                    .read_to_string(&mut left)
                    .expect("text");
                assert_eq!(
                    left,
                    text.split_once("MARK").expect("it is there").1,
                    "{text} by {size}"
                );
            }
        }
        assert_eq!(
            skip_to_mark(BufReader::new(&b"only a MAR"[..]), b"MARK").expect_err("none"),
            b"only a MAR"
        );
    }

    #[test]
    fn stderr_is_the_commands_alone() {
        let marks = Marks {
            first: "A".into(),
            second: "B".into(),
        };
        assert_eq!(
            marks.own_stderr(b"bewareABerr".to_vec()),
            (b"err".to_vec(), false)
        );
        assert_eq!(
            marks.own_stderr(b"bewareABerrBA".to_vec()),
            (b"err".to_vec(), true)
        );
        assert_eq!(
            marks.own_stderr(b"cut short".to_vec()),
            (b"cut short".to_vec(), false)
        );
    }
}
