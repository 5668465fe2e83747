//! The bytes of a manifest.

use super::{Entry, Flavor, Kind, MAX_PATH_BYTES, Manifest, Piece, Top};
use crate::codec::{Malformed, Reader, put_bytes, put_number, put_signed};

/// All paths of a manifest together take at most this much.
const MAX_ALL_PATHS_BYTES: usize = 512 << 20;

impl Manifest {
    /// Appends the bytes of the tree. `flush` is called whenever `out` has grown large.
    pub(crate) fn write_tree(&self, out: &mut Vec<u8>, mut flush: impl FnMut(&mut Vec<u8>)) {
        out.extend_from_slice(self.flavor.header());
        if self.flavor == Flavor::Workspace {
            put_number(out, u64::from(self.top.mode));
        }
        put_number(out, self.entries.len() as u64);
        let mut last: &[u8] = &[];
        for entry in &self.entries {
            let shared = last
                .iter()
                .zip(&*entry.path)
                .take_while(|(a, b)| a == b)
                .count();
            put_number(out, shared as u64);
            put_bytes(out, &entry.path[shared..]);
            last = &entry.path;
            put_number(out, u64::from(entry.mode));
            write_kind(out, &entry.kind);
            if out.len() > 1 << 15 {
                flush(out);
            }
        }
    }

    pub(crate) fn read_tree(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let header = reader.take(15)?;
        let flavor = [Flavor::Code, Flavor::Workspace]
            .into_iter()
            .find(|flavor| flavor.header() == header);
        let flavor = flavor.ok_or(Malformed::Other("it is not a tree of this version"))?;
        let mut top = Top::default();
        if flavor == Flavor::Workspace {
            top.mode = u32::try_from(reader.number()?).map_err(|_| Malformed::Number)?;
        }
        let count = reader.count()?;
        let mut entries: Vec<Entry> = Vec::with_capacity(count.min(1 << 16));
        let mut names = 0usize;
        for _ in 0..count {
            let last: &[u8] = entries.last().map_or(&[], |entry| &entry.path);
            let shared = usize::try_from(reader.number()?).map_err(|_| Malformed::Number)?;
            let rest = reader.bytes()?;
            let start = last.get(..shared).ok_or(Malformed::Short)?;
            // The shared prefix must be the longest, so that there is only one encoding.
            if last
                .get(shared)
                .is_some_and(|byte| rest.first() == Some(byte))
                || shared + rest.len() > MAX_PATH_BYTES
            {
                return Err(Malformed::Spelling);
            }
            // A few bytes can stand for a long path, so all paths together are bounded.
            names += shared + rest.len();
            if names > MAX_ALL_PATHS_BYTES {
                return Err(Malformed::Other("its names take too much room"));
            }
            let path: Box<[u8]> = [start, rest].concat().into();
            if !last.is_empty() && *path <= *last {
                return Err(Malformed::Other("a name is there twice or out of order"));
            }
            let mode = u32::try_from(reader.number()?).map_err(|_| Malformed::Number)?;
            let kind = read_kind(&mut reader)?;
            entries.push(Entry {
                path,
                mode,
                kind,
                modified: 0,
            });
        }
        reader.end()?;
        Ok(Self {
            flavor,
            top,
            entries,
        })
    }

    pub(crate) fn write_times(&self, out: &mut Vec<u8>) {
        let mut last = 0;
        if self.flavor == Flavor::Workspace {
            put_signed(out, self.top.modified);
            last = self.top.modified;
        }
        for entry in &self.entries {
            put_signed(out, entry.modified.wrapping_sub(last));
            last = entry.modified;
        }
    }

    pub(crate) fn read_times(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(bytes);
        let mut last = 0i64;
        if self.flavor == Flavor::Workspace {
            last = reader.signed()?;
            self.top.modified = last;
        }
        for entry in &mut self.entries {
            last = last.wrapping_add(reader.signed()?);
            entry.modified = last;
        }
        reader.end()
    }
}

fn write_kind(out: &mut Vec<u8>, kind: &Kind) {
    match kind {
        Kind::Folder => out.push(0),
        Kind::Link(target) => {
            out.push(1);
            put_bytes(out, target);
        }
        Kind::Same(first) => {
            out.push(3);
            put_bytes(out, first);
        }
        Kind::File(pieces) => {
            out.push(2);
            put_number(out, pieces.len() as u64);
            for piece in pieces {
                match piece {
                    Piece::Chunk { digest, length } => {
                        put_number(out, length << 1);
                        out.extend_from_slice(&digest.0);
                    }
                    Piece::Hole { length } => put_number(out, length << 1 | 1),
                }
            }
        }
    }
}

fn read_kind(reader: &mut Reader<'_>) -> Result<Kind, Malformed> {
    match reader.byte()? {
        0 => Ok(Kind::Folder),
        1 => Ok(Kind::Link(reader.bytes()?.into())),
        2 => {
            let count = reader.count()?;
            let mut pieces = Vec::with_capacity(count.min(1 << 12));
            for _ in 0..count {
                let number = reader.number()?;
                let length = number >> 1;
                if length == 0 {
                    return Err(Malformed::Other("a piece of a file is empty"));
                }
                pieces.push(if number & 1 == 0 {
                    Piece::Chunk {
                        digest: reader.digest()?,
                        length,
                    }
                } else {
                    Piece::Hole { length }
                });
            }
            Ok(Kind::File(pieces))
        }
        3 => Ok(Kind::Same(reader.bytes()?.into())),
        _ => Err(Malformed::Other(
            "an entry is neither folder, file nor link",
        )),
    }
}
