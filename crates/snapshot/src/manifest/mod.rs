//! The entries of a snapshot, in one order and one encoding, so that the digest of the bytes is the
//! identity of the tree.

mod encoding;
mod validate;

use crate::digest::Digest;

/// The bits of a mode that are kept: read, write and execute, and the sticky bit. Never set-uid or
/// set-gid.
pub const MODE_BITS: u32 = 0o1777;
/// Folders of a workspace also keep this bit: they hand their group on to new files.
const SET_GROUP_BIT: u32 = 0o2000;

/// The purpose of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavor {
    /// Code for runs. The same tree has the same id wherever and whenever it was checked out.
    #[default]
    Code,
    /// A workspace exactly as it was, with times and hard links.
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

/// The top folder of a workspace.
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

/// A part of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Chunk {
        digest: Digest,
        length: u64,
    },
    /// Zeros that take no room on disk.
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
    /// A symbolic link, with its target unchanged.
    Link(Box<[u8]>),
    /// A hard link to the file at this path, which comes before it. Only in a workspace.
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
}
