//! One file of a snapshot, without laying anything out.

use crate::digest::Digest;
use crate::manifest::{Entry, Kind, Piece};
use crate::pack::unpack;
use crate::problem::{Problem, Result};
use crate::root::Root;
use crate::store::{Blob, BlobStore};

/// The bytes of a file, verified; `None` for what is no file, or holds more than `most` bytes.
pub fn read_file(root: &Root, store: &dyn BlobStore, entry: &Entry, most: u64) -> Result<Option<Vec<u8>>> {
    let Kind::File(pieces) = &entry.kind else { return Ok(None) };
    if entry.size() > most {
        return Ok(None);
    }
    let chunks = root.chunks();
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Hole { length } => bytes.resize(bytes.len() + usize::try_from(*length).unwrap_or(0), 0),
            Piece::Chunk { digest, length } => {
                let missing = || Problem::hostile("content without a place");
                let (place, _) = chunks.get(digest).ok_or_else(missing)?;
                let (pack, frame) = root.frames.get(place.frame as usize).ok_or_else(missing)?;
                let pack = root.packs.get(*pack as usize).ok_or_else(missing)?;
                let stored = store.get_range(&Blob::Pack(*pack), frame.offset, frame.stored as usize)?;
                let raw = unpack(frame, &stored, pack)?;
                let begin = place.offset as usize;
                let part = usize::try_from(*length).ok().and_then(|length| raw.get(begin..begin.checked_add(length)?));
                let part = part.filter(|part| Digest::of(part) == *digest);
                let damaged = || Problem::damaged(format!("`{}`", String::from_utf8_lossy(&entry.path)), "its content is not what it was");
                bytes.extend_from_slice(part.ok_or_else(damaged)?);
            }
        }
    }
    Ok(Some(bytes))
}
