//! What each file held when it was last read, so that an unchanged one is not read again.
//!
//! A file that was changed shortly before it was read may be changed once more without its times
//! showing it: such an entry is not trusted the next time.

use crate::codec::{Malformed, Reader, put_bytes, put_number, put_signed};
use crate::digest::Digest;
use crate::manifest::Piece;
use crate::problem::{Problem, Result};
use crate::walk::{Found, FoundKind, Stamp};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The first bytes of the file, with the version of its format.
const CACHE_MAGIC: &[u8] = b"towline files 1\n";
/// The clocks of file systems are coarse: two seconds at worst.
const CLOCK_GRAIN_NANOS: i64 = 2_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) path: Box<[u8]>,
    pub(crate) stamp: Stamp,
    pub(crate) pieces: Vec<Piece>,
    /// It was older than the coarsest clock when it was read.
    pub(crate) settled: bool,
}

/// Whether a file that is read at `now` can be trusted by its times from then on.
pub(crate) const fn is_settled(stamp: &Stamp, now: i64) -> bool {
    stamp.modified < now - CLOCK_GRAIN_NANOS && stamp.changed < now - CLOCK_GRAIN_NANOS
}

/// Sorted by path.
pub(crate) fn load(file: &Path) -> Vec<Known> {
    // A memory only: what cannot be read is as good as none.
    fs::read(file)
        .ok()
        .and_then(|bytes| decode(&bytes).ok())
        .unwrap_or_default()
}

pub(crate) fn save(file: &Path, known: &[Known]) -> Result<()> {
    let failed = |error| Problem::file(file, "written", error);
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
    }
    let part = file.with_extension(format!("part-{}", std::process::id()));
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)
        .and_then(|mut out| out.write_all(&encode(known)))
        .map_err(failed)?;
    fs::rename(&part, file).map_err(failed)
}

/// The pieces of each found file whose content is known, in the order of `found`.
pub(crate) fn recall(known: Vec<Known>, found: &[Found]) -> Vec<Option<Vec<Piece>>> {
    let mut known = known.into_iter().peekable();
    found
        .iter()
        .map(|found| {
            while known.next_if(|known| known.path < found.path).is_some() {}
            let same = known.next_if(|known| known.path == found.path)?;
            (found.kind == FoundKind::File && same.settled && same.stamp == found.stamp)
                .then_some(same.pieces)
        })
        .collect()
}

fn encode(known: &[Known]) -> Vec<u8> {
    let mut out = CACHE_MAGIC.to_vec();
    put_number(&mut out, known.len() as u64);
    for file in known {
        put_bytes(&mut out, &file.path);
        out.push(u8::from(file.settled));
        let stamp = &file.stamp;
        put_number(&mut out, stamp.size);
        put_signed(&mut out, stamp.modified);
        put_signed(&mut out, stamp.changed);
        put_number(&mut out, stamp.inode);
        put_number(&mut out, stamp.device);
        put_number(&mut out, file.pieces.len() as u64);
        for piece in &file.pieces {
            match piece {
                Piece::Chunk { digest, length } => {
                    put_number(&mut out, length << 1);
                    out.extend_from_slice(&digest.0);
                }
                Piece::Hole { length } => put_number(&mut out, length << 1 | 1),
            }
        }
    }
    let seal = Digest::of(&out);
    out.extend_from_slice(&seal.0);
    out
}

fn decode(bytes: &[u8]) -> Result<Vec<Known>, Malformed> {
    let sealed = bytes.len().checked_sub(32).ok_or(Malformed::Short)?;
    if Digest::of(&bytes[..sealed]).0 != bytes[sealed..] {
        return Err(Malformed::Other("damaged"));
    }
    let mut reader = Reader::new(
        bytes[..sealed]
            .strip_prefix(CACHE_MAGIC)
            .ok_or(Malformed::Other("another version"))?,
    );
    let count = reader.count()?;
    let mut known = Vec::with_capacity(count);
    for _ in 0..count {
        let path = reader.bytes()?.into();
        let settled = reader.byte()? == 1;
        let stamp = Stamp {
            size: reader.number()?,
            modified: reader.signed()?,
            changed: reader.signed()?,
            inode: reader.number()?,
            device: reader.number()?,
        };
        let pieces = (0..reader.count()?)
            .map(|_| {
                let number = reader.number()?;
                let length = number >> 1;
                Ok(if number & 1 == 0 {
                    Piece::Chunk {
                        digest: reader.digest()?,
                        length,
                    }
                } else {
                    Piece::Hole { length }
                })
            })
            .collect::<Result<_, Malformed>>()?;
        known.push(Known {
            path,
            stamp,
            pieces,
            settled,
        });
    }
    reader.end()?;
    Ok(known)
}
