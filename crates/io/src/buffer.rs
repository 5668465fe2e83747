//! A pool of buffers for blocks. Without it the allocator keeps several times the memory in use,
//! because blocks come and go on many threads.

use bytes::Bytes;
use std::sync::Mutex;

/// Smaller buffers are left to the allocator, which handles them well.
const MIN_POOLED_BYTES: usize = 1 << 20;
/// The sizes of pooled buffers. Larger blocks are too rare to keep.
const POOLED_SIZES: [usize; 2] = [4 << 20, 8 << 20];
/// Bytes of unused buffers that are kept; more can be in use.
const MAX_SPARE_BYTES: usize = 32 << 20;

/// Buffers that nobody uses now.
static SPARE_BUFFERS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A buffer to be overwritten; its first content is arbitrary.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
}

impl Buffer {
    pub(crate) fn new(length: usize) -> Self {
        let size = POOLED_SIZES
            .into_iter()
            .find(|size| length >= MIN_POOLED_BYTES && length <= *size);
        let bytes = match size {
            Some(size) => {
                let mut spare = SPARE_BUFFERS.lock().expect("no panic while held");
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
        if POOLED_SIZES.contains(&self.bytes.len())
            && let Ok(mut spare) = SPARE_BUFFERS.lock()
            && spare.iter().map(Vec::len).sum::<usize>() + self.bytes.len() <= MAX_SPARE_BYTES
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
            MIN_POOLED_BYTES - 1,
            MIN_POOLED_BYTES,
            POOLED_SIZES[0] - 1,
            POOLED_SIZES[0],
            POOLED_SIZES[0] + 1,
            POOLED_SIZES[1],
            POOLED_SIZES[1] + 1,
        ] {
            let mut buffer = Buffer::new(length);
            assert_eq!(buffer.as_mut().len(), length);
            buffer.as_mut().fill(7);
            let bytes = buffer.freeze();
            assert!(bytes.len() == length && bytes.iter().all(|byte| *byte == 7));
        }
    }
}
