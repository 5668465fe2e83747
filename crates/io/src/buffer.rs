//! Memory for blocks, used again and again: an allocator that sees blocks come and go on many
//! threads keeps several times as much as is in use.

use bytes::Bytes;
use std::sync::Mutex;

/// Below this the allocator does well by itself.
const SMALL: usize = 1 << 20;
/// Blocks come in a few sizes only; larger ones are too rare to keep.
const SIZES: [usize; 2] = [4 << 20, 8 << 20];
/// Bytes kept for the next; more can be in use.
const KEPT: usize = 32 << 20;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// So many bytes to be overwritten; what they hold is arbitrary.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
}

impl Buffer {
    pub(crate) fn new(length: usize) -> Self {
        let size = SIZES
            .into_iter()
            .find(|size| length >= SMALL && length <= *size);
        let bytes = match size {
            Some(size) => {
                let mut spare = SPARE.lock().expect("no panic while held");
                let fitting = spare.iter().position(|bytes| bytes.len() == size);
                fitting.map_or_else(|| vec![0; size], |at| spare.swap_remove(at))
            }
            None => vec![0; length],
        };
        Self { bytes, length }
    }
    pub(crate) fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if SIZES.contains(&self.bytes.len())
            && let Ok(mut spare) = SPARE.lock()
            && spare.iter().map(Vec::len).sum::<usize>() + self.bytes.len() <= KEPT
        {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_length_that_was_asked_for() {
        for length in [
            0,
            1,
            SMALL - 1,
            SMALL,
            SIZES[0] - 1,
            SIZES[0],
            SIZES[0] + 1,
            SIZES[1],
            SIZES[1] + 1,
        ] {
            let mut buffer = Buffer::new(length);
            assert_eq!(buffer.as_mut().len(), length);
            buffer.as_mut().fill(7);
            let bytes = buffer.freeze();
            assert!(bytes.len() == length && bytes.iter().all(|byte| *byte == 7));
        }
    }
}
