//! Reading one file of a snapshot without laying it out.

use crate::digest::Digest;
use crate::manifest::{Entry, Kind, Piece};
use crate::pack::unpack;
use crate::problem::{Problem, Result};
use crate::root::Root;
use crate::store::{Blob, BlobStore};

/// The verified bytes of a file; `None` if the entry is no file, or has more than `most` bytes.
pub fn read_file(
    root: &Root,
    store: &dyn BlobStore,
    entry: &Entry,
    most: u64,
) -> Result<Option<Vec<u8>>> {
    if entry.size() > most {
        return Ok(None);
    }
    read_part(root, store, entry, 0, most)
}

/// At most `most` verified bytes of a file from `offset` on; `None` if the entry is no file.
pub fn read_part(
    root: &Root,
    store: &dyn BlobStore,
    entry: &Entry,
    offset: u64,
    most: u64,
) -> Result<Option<Vec<u8>>> {
    let Kind::File(pieces) = &entry.kind else {
        return Ok(None);
    };
    let end = offset.saturating_add(most);
    let chunks = root.chunks();
    let (mut bytes, mut at) = (Vec::new(), 0);
    for piece in pieces {
        let (begin, length) = (at, piece.length());
        at += length;
        if at <= offset || begin >= end {
            continue;
        }
        // Both are within the piece.
        let place = |position: u64| {
            usize::try_from(position.saturating_sub(begin).min(length)).unwrap_or(usize::MAX)
        };
        let (from, to) = (place(offset), place(end));
        match piece {
            Piece::Hole { .. } => bytes.resize(bytes.len() + (to - from), 0),
            Piece::Chunk { digest, length } => {
                let missing = || Problem::hostile("content without a place");
                let (place, _) = chunks.get(digest).ok_or_else(missing)?;
                let (pack, frame) = root.frames.get(place.frame as usize).ok_or_else(missing)?;
                let pack = root.packs.get(*pack as usize).ok_or_else(missing)?;
                let stored =
                    store.get_range(&Blob::Pack(*pack), frame.offset, frame.stored as usize)?;
                let raw = unpack(frame, &stored, pack)?;
                let begin = place.offset as usize;
                let part = usize::try_from(*length)
                    .ok()
                    .and_then(|length| raw.get(begin..begin.checked_add(length)?));
                let part = part.filter(|part| Digest::of(part) == *digest);
                let damaged = || {
                    Problem::damaged(
                        format!("`{}`", String::from_utf8_lossy(&entry.path)),
                        "its content is not what it was",
                    )
                };
                bytes
                    .extend_from_slice(part.ok_or_else(damaged)?.get(from..to).unwrap_or_default());
            }
        }
    }
    Ok(Some(bytes))
}
