//! A file cut into chunks. A small file is one chunk. A large file is cut by its content, so that a
//! change in the middle leaves the other chunks the same. Holes of sparse files stay holes.

use crate::digest::Digest;
use crate::manifest::Piece;
use crate::walk::Stamp;
use fastcdc::v2020::StreamCDC;
use rustix::fs::{Mode, OFlags, SeekFrom, fstat, openat, seek};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// A file of at most this size is one chunk.
const MAX_WHOLE_BYTES: u64 = 1 << 20;
/// No chunk of a larger file is smaller than this, but for the last.
const MIN_CHUNK_BYTES: u32 = 256 << 10;
/// Chunks of a larger file have about this size.
const AVERAGE_CHUNK_BYTES: u32 = 1 << 20;
/// No chunk is larger than this.
const MAX_CHUNK_BYTES: u32 = 4 << 20;
/// A file that changes while it is read is read up to this often.
const MAX_TRIES: usize = 3;

/// The content of a file.
pub(crate) struct Content {
    pub(crate) pieces: Vec<Piece>,
    /// The stamp while it was read.
    pub(crate) stamp: Stamp,
    /// The file kept changing: its pieces may be of different moments.
    pub(crate) unsteady: bool,
}

/// Reads a file and hands each chunk to `keep`, also the chunks of a try that is then repeated.
pub(crate) fn read(
    path: &Path,
    buffer: &mut Vec<u8>,
    keep: &mut dyn FnMut(Digest, &[u8]) -> io::Result<()>,
) -> io::Result<Content> {
    let mut tries = 0;
    loop {
        tries += 1;
        let fd = openat(
            rustix::fs::CWD,
            path,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::empty(),
        )?;
        let stat = fstat(&fd)?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(io::ErrorKind::NotFound.into());
        }
        let before = Stamp::of(&stat);
        let on_disk = u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512);
        let file = File::from(fd);
        let pieces = if before.size > MAX_WHOLE_BYTES && on_disk + 4096 < before.size {
            read_sparse(&file, before.size, keep)?
        } else if before.size <= MAX_WHOLE_BYTES {
            read_whole(&file, before.size, buffer, keep)?
        } else {
            cut(&file, before.size, keep)?
        };
        let after = Stamp::of(&fstat(&file)?);
        let read: u64 = pieces.iter().map(Piece::length).sum();
        let steady = before == after && read == before.size;
        if steady || tries >= MAX_TRIES {
            return Ok(Content {
                pieces,
                stamp: before,
                unsteady: !steady,
            });
        }
    }
}

fn read_whole(
    mut file: &File,
    size: u64,
    buffer: &mut Vec<u8>,
    keep: &mut dyn FnMut(Digest, &[u8]) -> io::Result<()>,
) -> io::Result<Vec<Piece>> {
    buffer.clear();
    // One byte more than its size shows whether the file grew, without another call.
    let room = usize::try_from(size).unwrap_or(0) + 1;
    buffer.resize(room, 0);
    let mut filled = 0;
    while filled < room {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let bytes = &buffer[..filled.min(room - 1)];
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let digest = Digest::of(bytes);
    keep(digest, bytes)?;
    Ok(vec![Piece::Chunk {
        digest,
        length: bytes.len() as u64,
    }])
}

fn cut(
    file: impl Read,
    size: u64,
    keep: &mut dyn FnMut(Digest, &[u8]) -> io::Result<()>,
) -> io::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for chunk in StreamCDC::new(
        file.take(size),
        MIN_CHUNK_BYTES,
        AVERAGE_CHUNK_BYTES,
        MAX_CHUNK_BYTES,
    ) {
        let chunk = chunk.map_err(io::Error::from)?;
        let digest = Digest::of(&chunk.data);
        keep(digest, &chunk.data)?;
        pieces.push(Piece::Chunk {
            digest,
            length: chunk.data.len() as u64,
        });
    }
    Ok(pieces)
}

fn read_sparse(
    file: &File,
    size: u64,
    keep: &mut dyn FnMut(Digest, &[u8]) -> io::Result<()>,
) -> io::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < size {
        let begin = match seek(file.as_fd(), SeekFrom::Data(at)) {
            Ok(begin) => begin.min(size),
            Err(rustix::io::Errno::NXIO) => size,
            Err(error) => return Err(error.into()),
        };
        if begin > at {
            pieces.push(Piece::Hole { length: begin - at });
        }
        if begin == size {
            break;
        }
        let end = seek(file.as_fd(), SeekFrom::Hole(begin))?.min(size);
        seek(file.as_fd(), SeekFrom::Start(begin))?;
        pieces.extend(cut(file, end - begin, keep)?);
        at = end;
    }
    Ok(pieces)
}
