//! The seam to where snapshots are kept: bytes by name, written once, never replaced.

mod folder;

pub use folder::FolderStore;

use crate::digest::Digest;
use crate::problem::Result;
use std::path::PathBuf;

/// What is kept, and under which name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blob {
    /// Content, named by the digest of its bytes.
    Pack(Digest),
    /// A manifest with the places of its content, named by the snapshot's id.
    Root(Digest),
    /// The same of a workspace, named by its moment in milliseconds, then its id.
    Backup(i64, Digest),
    /// A list of packs that are about to be deleted, named by its moment and the digest of its
    /// bytes.
    PendingDeletion(i64, Digest),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobKind {
    Pack,
    Root,
    Backup,
    PendingDeletion,
}

impl BlobKind {
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Pack => "packs",
            Self::Root => "snapshots",
            Self::Backup => "backups",
            Self::PendingDeletion => "doomed",
        }
    }
}

impl Blob {
    pub fn path(&self) -> String {
        match self {
            Self::Pack(digest) => {
                let digest = digest.to_string();
                format!("packs/{}/{digest}", &digest[..2])
            }
            Self::Root(digest) => format!("snapshots/{digest}"),
            Self::Backup(at, digest) => format!("backups/{at:020}-{digest}"),
            Self::PendingDeletion(at, digest) => format!("doomed/{at:020}-{digest}"),
        }
    }

    pub fn parse(path: &str) -> Option<Self> {
        let (folder, rest) = path.split_once('/')?;
        let blob = match folder {
            "packs" => Self::Pack(Digest::parse(rest.split_once('/')?.1)?),
            "snapshots" => Self::Root(Digest::parse(rest)?),
            "backups" | "doomed" => {
                let (at, digest) = rest.split_once('-')?;
                let (at, digest) = (at.parse().ok()?, Digest::parse(digest)?);
                if folder == "backups" {
                    Self::Backup(at, digest)
                } else {
                    Self::PendingDeletion(at, digest)
                }
            }
            _ => return None,
        };
        (blob.path() == path).then_some(blob)
    }

    /// For messages.
    pub fn shown(&self) -> String {
        let what = match self {
            Self::Pack(_) => "pack",
            Self::Root(_) => "snapshot",
            Self::Backup(..) => "backup",
            Self::PendingDeletion(..) => "list",
        };
        format!("{what} {}", self.digest().short())
    }

    /// What it holds is known by this.
    pub const fn digest(&self) -> Digest {
        match self {
            Self::Pack(digest)
            | Self::Root(digest)
            | Self::Backup(_, digest)
            | Self::PendingDeletion(_, digest) => *digest,
        }
    }
}

/// One thing that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub blob: Blob,
    pub size: u64,
    /// Milliseconds since 1970.
    pub changed: Option<i64>,
}

/// Where snapshots are kept. Calls block, may be made from many threads, and may be repeated.
pub trait BlobStore: Send + Sync {
    /// For messages.
    fn place(&self) -> String;

    fn has(&self, blob: &Blob) -> Result<bool>;

    /// Keeps `bytes`, whole or not at all; what is there already stays. Once this returns, they
    /// are there for good.
    fn put(&self, blob: &Blob, bytes: &[u8]) -> Result<()>;

    /// All of it, or `None` where there is no such thing.
    fn get(&self, blob: &Blob) -> Result<Option<Vec<u8>>>;

    /// Exactly that part.
    fn get_range(&self, blob: &Blob, offset: u64, length: usize) -> Result<Vec<u8>>;

    fn list(&self, kind: BlobKind) -> Result<Vec<Stored>>;

    /// Which of these packs are not there.
    fn missing(&self, packs: &[Digest]) -> Result<Vec<Digest>> {
        let there: std::collections::HashSet<Blob> = self
            .list(BlobKind::Pack)?
            .into_iter()
            .map(|stored| stored.blob)
            .collect();
        Ok(packs
            .iter()
            .filter(|pack| !there.contains(&Blob::Pack(**pack)))
            .copied()
            .collect())
    }

    /// What is not there is fine.
    fn delete(&self, blobs: &[Blob]) -> Result<()>;

    /// How many calls of [`Self::put`] and [`Self::get_range`] at once make it fastest.
    fn parallel(&self) -> usize {
        2
    }

    /// A folder beside it where large files may be kept whole, for layouts on the same file system.
    fn whole_files(&self) -> Option<PathBuf> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_nothing_else_does() {
        let digest = Digest::of(b"x");
        for blob in [
            Blob::Pack(digest),
            Blob::Root(digest),
            Blob::Backup(1_700_000_000_000, digest),
            Blob::PendingDeletion(1_700_000_000_000, digest),
        ] {
            assert_eq!(Blob::parse(&blob.path()), Some(blob));
        }
        for odd in ["packs/../x", "packs/zz", "snapshots/", "x", "packs/ff/0000"] {
            assert_eq!(Blob::parse(odd), None, "{odd}");
        }
    }
}
