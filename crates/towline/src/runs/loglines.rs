//! Cuts a log into lines as its bytes come, in bounded memory and linear time.

/// A longer line counts as several.
pub(crate) const LONGEST_LINE_BYTES: usize = 4 << 20;

/// How a piece of a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Newline,
    /// A carriage return: a progress bar draws over what it has drawn.
    Return,
    /// Without a line end: the line is too long and goes on in the next piece.
    Cut,
}

/// The incomplete line at the end of the bytes so far.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pending: Vec<u8>,
    /// A carriage return ends a piece too.
    returns: bool,
}

impl Lines {
    pub(crate) const fn new(returns: bool) -> Self {
        Self {
            pending: Vec::new(),
            returns,
        }
    }

    /// Takes new bytes, and passes on every complete piece without its line end.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut give: impl FnMut(&[u8], End)) {
        while !bytes.is_empty() {
            let room = LONGEST_LINE_BYTES - self.pending.len();
            let within = &bytes[..bytes.len().min(room)];
            // Search only the new bytes, because the pending ones contain no line end.
            let found = within
                .iter()
                .position(|byte| *byte == b'\n' || (self.returns && *byte == b'\r'));
            let (used, body, end) = match found {
                Some(at) if within[at] == b'\n' => (at + 1, at, End::Newline),
                Some(at) => (at + 1, at, End::Return),
                None if within.len() == room => (room, room, End::Cut),
                None => return self.pending.extend_from_slice(within),
            };
            if self.pending.is_empty() {
                give(&bytes[..body], end);
            } else {
                self.pending.extend_from_slice(&bytes[..body]);
                give(&self.pending, end);
                self.pending.clear();
            }
            bytes = &bytes[used..];
        }
    }

    /// The bytes of a last line without a line end.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(returns: bool, chunks: &[&[u8]]) -> (Vec<(String, End)>, String) {
        let mut lines = Lines::new(returns);
        let mut given = Vec::new();
        for chunk in chunks {
            lines.feed(chunk, |body, end| {
                given.push((String::from_utf8_lossy(body).into_owned(), end));
            });
        }
        (given, String::from_utf8_lossy(&lines.rest()).into_owned())
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_come() {
        let whole = cut(false, &[b"one\ntwo\n\nthree"]);
        assert_eq!(
            whole
                .0
                .iter()
                .map(|(body, _)| body.as_str())
                .collect::<Vec<_>>(),
            ["one", "two", ""]
        );
        assert_eq!(whole.1, "three");
        assert_eq!(
            cut(false, &[b"o", b"ne", b"\ntw", b"o\n", b"\nthr", b"ee"]),
            whole
        );
    }

    #[test]
    fn a_progress_bar_is_given_as_it_is_drawn() {
        let (given, rest) = cut(true, &[b"10%\r2", b"0%\rdone\n30%"]);
        assert_eq!(
            given,
            [
                ("10%".to_owned(), End::Return),
                ("20%".to_owned(), End::Return),
                ("done".to_owned(), End::Newline)
            ]
        );
        assert_eq!(rest, "30%");
        assert_eq!(cut(false, &[b"10%\r20%\n"]).0.len(), 1);
    }

    #[test]
    fn a_line_without_an_end_is_given_in_pieces_and_held_in_bounded_memory() {
        let chunk = vec![b'x'; (1 << 20) + 7];
        let mut lines = Lines::new(false);
        let (mut given, mut pieces) = (0, 0);
        for _ in 0..64 {
            lines.feed(&chunk, |body, end| {
                assert_eq!((body.len(), end), (LONGEST_LINE_BYTES, End::Cut));
                given += body.len();
                pieces += 1;
            });
            assert!(lines.pending.capacity() <= 2 * LONGEST_LINE_BYTES);
        }
        assert!(pieces > 10);
        assert_eq!(given + lines.rest().len(), 64 * chunk.len());
    }
}
