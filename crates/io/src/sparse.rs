//! Writing files with holes.

use rustix::fs::{FallocateFlags, SeekFrom};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes that are checked for zeros together; a block of zeros becomes a hole.
const HOLE_BLOCK_BYTES: usize = 64 << 10;

/// Writes at an offset. Blocks of zeros become holes if the file system supports that.
pub(crate) fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut begin = 0;
    while begin < bytes.len() {
        let zero = is_zero(&bytes[begin..(begin + HOLE_BLOCK_BYTES).min(bytes.len())]);
        let mut end = (begin + HOLE_BLOCK_BYTES).min(bytes.len());
        while end < bytes.len()
            && is_zero(&bytes[end..(end + HOLE_BLOCK_BYTES).min(bytes.len())]) == zero
        {
            end = (end + HOLE_BLOCK_BYTES).min(bytes.len());
        }
        let at = offset + begin as u64;
        if !zero || punch(file, at, (end - begin) as u64).is_err() {
            write_pieces(file, &bytes[begin..end], at)?;
        }
        begin = end;
    }
    Ok(())
}

/// Bytes that one call writes. On some virtual machines the kernel is slow to find memory for
/// longer writes: 1 GiB took three times as long.
const WRITE_BYTES: usize = 256 << 10;

fn write_pieces(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut at = offset;
    for piece in bytes.chunks(WRITE_BYTES) {
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    // Only inside the file, because a hole past the end would not make it longer.
    if offset + length > file.metadata()?.len() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(rustix::fs::fallocate(
        file,
        FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        offset,
        length,
    )?)
}

fn is_zero(bytes: &[u8]) -> bool {
    let (words, tail) = bytes.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && tail.iter().all(|byte| *byte == 0)
}

/// Whether the whole range is a hole; false if the file system does not know.
pub(crate) fn is_hole(file: &File, range: &Range<u64>) -> bool {
    match rustix::fs::seek(file, SeekFrom::Data(range.start)) {
        Ok(data) => data >= range.end,
        Err(rustix::io::Errno::NXIO) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn zeros_take_no_room_and_read_back() {
        let file = tempfile::tempfile().expect("a file");
        let mut bytes = vec![0u8; 4 << 20];
        bytes[1_000_000] = 7;
        *bytes.last_mut().expect("some") = 9;
        file.set_len(8 << 20).expect("set");
        file.write_all_at(&vec![255; 4 << 20], 4 << 20)
            .expect("old bytes");
        write_at(&file, 4 << 20, &bytes).expect("written");
        let mut back = vec![1u8; 8 << 20];
        file.read_exact_at(&mut back, 0).expect("read");
        assert!(back[..4 << 20].iter().all(|byte| *byte == 0));
        assert_eq!(&back[4 << 20..], &bytes[..]);
        assert!(
            file.metadata().expect("there").blocks() * 512 < 1 << 20,
            "holes are kept"
        );
        assert!(is_hole(&file, &(0..4 << 20)) && !is_hole(&file, &(0..8 << 20)));
    }
}
