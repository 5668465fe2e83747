//! The content of each file when it was last read, so that an unchanged file is not read again.
//!
//! A file that was changed shortly before it was read may change once more while its times stay the
//! same. Such an entry is not trusted the next time.

use crate::codec::{Malformed, Reader, put_bytes, put_number, put_signed};
use crate::digest::Digest;
use crate::manifest::Piece;
use crate::problem::{Problem, Result};
use crate::tree::TreeEntry;
use crate::walk::{Found, FoundKind, Stamp};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The first bytes of the file, with the version of its format.
const CACHE_MAGIC: &[u8] = b"towline files 1\n";
/// The clocks of file systems are coarse: two seconds at worst.
const CLOCK_GRAIN_NANOS: i64 = 2_000_000_000;

/// A file and its content when it was last read.
pub(crate) struct Known {
    pub(crate) path: Box<[u8]>,
    pub(crate) stamp: Stamp,
    pub(crate) pieces: Vec<Piece>,
    /// When the file was read, its last change was longer ago than the grain of any clock.
    settled: bool,
}

/// Whether the times of a file that is read at `now` will show its next change.
const fn is_settled(stamp: &Stamp, now: i64) -> bool {
    stamp.modified < now - CLOCK_GRAIN_NANOS && stamp.changed < now - CLOCK_GRAIN_NANOS
}

/// The entries of a walked tree, with the content of each file that is known to be unchanged.
pub(crate) fn recall(file: &Path, found: Vec<Found>) -> Vec<TreeEntry> {
    let mut known = load(file).into_iter().peekable();
    found
        .into_iter()
        .map(|found| {
            while known.next_if(|known| known.path < found.path).is_some() {}
            let pieces = known
                .next_if(|known| known.path == found.path)
                .filter(|same| {
                    found.kind == FoundKind::File && same.settled && same.stamp == found.stamp
                })
                .map(|same| same.pieces);
            TreeEntry {
                found,
                pieces,
                read_stamp: None,
                is_unsteady: false,
            }
        })
        .collect()
}

/// Writes down the content of every file that did not change while it was read.
pub(crate) fn update(file: &Path, entries: &[TreeEntry], now: i64) -> Result<()> {
    let known: Vec<Known> = entries
        .iter()
        .filter(|entry| entry.is_file() && !entry.is_unsteady)
        .filter_map(|entry| {
            // Recalled content was settled; content that was read is judged by its age.
            let settled = entry
                .read_stamp
                .as_ref()
                .is_none_or(|stamp| is_settled(stamp, now));
            Some(Known {
                path: entry.found.path.clone(),
                stamp: entry.read_stamp.unwrap_or(entry.found.stamp),
                pieces: entry.pieces.clone()?,
                settled,
            })
        })
        .collect();
    save(file, &known)
}

/// The files of the cache, sorted by path. A cache that cannot be read is as good as none.
pub(crate) fn load(file: &Path) -> Vec<Known> {
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
