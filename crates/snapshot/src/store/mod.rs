//! The interface of a store of snapshots: bytes by name, written once and never replaced.

mod folder;

pub use folder::FolderStore;

use crate::digest::Digest;
use crate::problem::Result;
use std::path::PathBuf;

/// One stored object, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blob {
    /// A pack of content, named by the digest of its bytes.
    Pack(Digest),
    /// The root of a snapshot, named by the snapshot's id.
    Root(Digest),
    /// The root of a backup, named by its moment in milliseconds and its id.
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

    /// The name for messages.
    pub fn shown(&self) -> String {
        let what = match self {
            Self::Pack(_) => "pack",
            Self::Root(_) => "snapshot",
            Self::Backup(..) => "backup",
            Self::PendingDeletion(..) => "list",
        };
        format!("{what} {}", self.digest().short())
    }

    /// The digest in its name.
    pub const fn digest(&self) -> Digest {
        match self {
            Self::Pack(digest)
            | Self::Root(digest)
            | Self::Backup(_, digest)
            | Self::PendingDeletion(_, digest) => *digest,
        }
    }
}

/// One object in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub blob: Blob,
    pub size: u64,
    /// Milliseconds since 1970.
    pub changed: Option<i64>,
}

/// A store of snapshots. Calls block, may come from many threads, and may be repeated.
pub trait BlobStore: Send + Sync {
    /// For messages.
    fn place(&self) -> String;

    fn has(&self, blob: &Blob) -> Result<bool>;

    /// Stores `bytes`, whole or not at all. An existing object stays as it is. Once this returns,
    /// the object survives a power cut.
    fn put(&self, blob: &Blob, bytes: &[u8]) -> Result<()>;

    /// The whole object; `None` if there is none.
    fn get(&self, blob: &Blob) -> Result<Option<Vec<u8>>>;

    /// Exactly that part of an object.
    fn get_range(&self, blob: &Blob, offset: u64, length: usize) -> Result<Vec<u8>>;

    fn list(&self, kind: BlobKind) -> Result<Vec<Stored>>;

    /// The packs of these that are not in the store.
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

    /// Deletes objects. A missing one is not an error.
    fn delete(&self, blobs: &[Blob]) -> Result<()>;

    /// How many calls of [`Self::put`] and [`Self::get_range`] should run at once.
    fn parallel(&self) -> usize {
        2
    }

    /// A folder where large files may be kept whole, for layouts on the same file system.
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
        for wrong in ["packs/../x", "packs/zz", "snapshots/", "x", "packs/ff/0000"] {
            assert_eq!(Blob::parse(wrong), None, "{wrong}");
        }
    }
}
