//! What a snapshot holds: every entry of the tree in one order and one spelling, so that the
//! digest of the text is the identity of the tree.

use crate::codec::{Malformed, Reader, put_bytes, put_number, put_signed};
use crate::digest::Digest;
use crate::problem::{Problem, Result};
use std::collections::HashSet;

/// Bits of a mode that travel: who may read, write and execute, and the sticky bit. Never set-uid
/// or set-gid.
pub const MODE_BITS: u32 = 0o1777;
/// Folders of a workspace also keep this bit: they hand their group on to new files.
const SET_GROUP_BIT: u32 = 0o2000;

/// What a tree is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavor {
    /// Code for runs: the same tree has the same id wherever and whenever it was checked out.
    #[default]
    Code,
    /// A workspace, exactly as it was: times are part of it, and names that are one file.
    Workspace,
}

impl Flavor {
    pub(crate) const fn mode_bits(self, is_folder: bool) -> u32 {
        match self {
            Self::Workspace if is_folder => MODE_BITS | SET_GROUP_BIT,
            _ => MODE_BITS,
        }
    }

    const fn header(self) -> &'static [u8; 15] {
        match self {
            Self::Code => b"towline tree 1\n",
            Self::Workspace => b"towline work 1\n",
        }
    }
}

/// The folder itself, of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Top {
    pub mode: u32,
    /// Nanoseconds since 1970.
    pub modified: i64,
}

/// The longest path that Linux takes.
const MAX_PATH_BYTES: usize = 4095;
/// The longest name that Linux takes.
const MAX_NAME_BYTES: usize = 255;
/// All paths of a manifest together take at most this much.
const MAX_ALL_PATHS_BYTES: usize = 512 << 20;

/// A part of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Chunk {
        digest: Digest,
        length: u64,
    },
    /// Nothing but zeros, that take no room on disk.
    Hole {
        length: u64,
    },
}

impl Piece {
    pub const fn length(&self) -> u64 {
        match self {
            Self::Chunk { length, .. } | Self::Hole { length } => *length,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Folder,
    File(Vec<Piece>),
    /// Its target, exactly as it is.
    Link(Box<[u8]>),
    /// Another name of the file at this path, which comes before it. Only in a workspace.
    Same(Box<[u8]>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Below the root, parts joined by `/`; any bytes but zero.
    pub path: Box<[u8]>,
    pub mode: u32,
    pub kind: Kind,
    /// Nanoseconds since 1970. Not part of the identity of code.
    pub modified: i64,
}

impl Entry {
    pub fn size(&self) -> u64 {
        match &self.kind {
            Kind::File(pieces) => pieces.iter().map(Piece::length).sum(),
            _ => 0,
        }
    }
    pub fn chunks(&self) -> impl Iterator<Item = (&Digest, u64)> {
        let pieces: &[Piece] = match &self.kind {
            Kind::File(pieces) => pieces,
            _ => &[],
        };
        pieces.iter().filter_map(|piece| match piece {
            Piece::Chunk { digest, length } => Some((digest, *length)),
            Piece::Hole { .. } => None,
        })
    }
}

/// The entries of a tree, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    pub flavor: Flavor,
    pub top: Top,
    pub entries: Vec<Entry>,
}

impl Manifest {
    pub fn id(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        let mut text = Vec::with_capacity(1 << 16);
        self.write_tree(&mut text, |text| {
            hasher.update(text);
            text.clear();
        });
        if self.flavor == Flavor::Workspace {
            self.write_times(&mut text);
        }
        hasher.update(&text);
        Digest(*hasher.finalize().as_bytes())
    }

    pub fn files(&self) -> usize {
        self.entries
            .iter()
            .filter(|entry| matches!(entry.kind, Kind::File(_) | Kind::Same(_)))
            .count()
    }

    /// Bytes of content, holes included.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(Entry::size).sum()
    }

    /// The identity's text. `flush` is called whenever a good deal has gathered.
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
            // The longest shared beginning, or there would be two spellings.
            if last
                .get(shared)
                .is_some_and(|byte| rest.first() == Some(byte))
                || shared + rest.len() > MAX_PATH_BYTES
            {
                return Err(Malformed::Spelling);
            }
            // A few bytes here can stand for a long path: all of them together are bounded.
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

    /// Refuses what no walk of ours makes: paths that leave the root or go through something that
    /// is no folder, names twice, strange modes, impossible sizes.
    pub fn validate(&self) -> Result<()> {
        let (mut folders, mut files): (HashSet<&[u8]>, HashSet<&[u8]>) =
            (HashSet::new(), HashSet::new());
        folders.insert(&[]);
        if self.top.mode & !self.flavor.mode_bits(true) != 0 {
            return Err(Problem::hostile(format!(
                "its folder has the mode {:o}",
                self.top.mode
            )));
        }
        let mut last: Option<&[u8]> = None;
        let mut total = 0u64;
        for entry in &self.entries {
            let shown = || String::from_utf8_lossy(&entry.path).into_owned();
            check_path(&entry.path)
                .map_err(|why| Problem::hostile(format!("`{}` {why}", shown().escape_debug())))?;
            if last.is_some_and(|last| last >= &*entry.path) {
                return Err(Problem::hostile(format!(
                    "`{}` is there twice or out of order",
                    shown()
                )));
            }
            let parent = entry
                .path
                .iter()
                .rposition(|byte| *byte == b'/')
                .map_or(&[][..], |at| &entry.path[..at]);
            if !folders.contains(parent) {
                return Err(Problem::hostile(format!(
                    "`{}` lies in something that is no folder",
                    shown()
                )));
            }
            if entry.mode & !self.flavor.mode_bits(entry.kind == Kind::Folder) != 0 {
                return Err(Problem::hostile(format!(
                    "`{}` has the mode {:o}",
                    shown(),
                    entry.mode
                )));
            }
            match &entry.kind {
                Kind::Folder => {
                    folders.insert(&entry.path);
                }
                Kind::Link(target)
                    if target.is_empty()
                        || target.len() > MAX_PATH_BYTES
                        || target.contains(&0) =>
                {
                    return Err(Problem::hostile(format!(
                        "the link `{}` has no possible target",
                        shown()
                    )));
                }
                Kind::Link(_) => {}
                Kind::Same(first)
                    if self.flavor == Flavor::Workspace && files.contains(&**first) => {}
                Kind::Same(_) => {
                    return Err(Problem::hostile(format!(
                        "`{}` is another name of nothing",
                        shown()
                    )));
                }
                Kind::File(pieces) => {
                    if self.flavor == Flavor::Workspace {
                        files.insert(&entry.path);
                    }
                    for piece in pieces {
                        total = total
                            .checked_add(piece.length())
                            .ok_or_else(|| Problem::hostile("its size is impossible"))?;
                    }
                }
            }
            last = Some(&entry.path);
        }
        if total > i64::MAX.unsigned_abs() {
            Err(Problem::hostile("its size is impossible"))
        } else {
            Ok(())
        }
    }
}

fn check_path(path: &[u8]) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES {
        return Err("is no path");
    }
    if path.contains(&0) {
        return Err("holds a zero byte");
    }
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" => return Err("is absolute or has an empty part"),
            b"." | b".." => return Err("has a `.` or `..` part"),
            part if part.len() > MAX_NAME_BYTES => return Err("has a part that is too long"),
            _ => {}
        }
    }
    Ok(())
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
