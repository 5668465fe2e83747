//! The backups of a store, without reading all of each.

use crate::digest::Digest;
use crate::problem::Result;
use crate::root::{MAX_SUMMARY_BYTES, Summary};
use crate::store::{Blob, BlobKind, BlobStore, Stored};

/// One backup of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub blob: Blob,
    /// The moment that orders backups and decides how long they are kept, in milliseconds. It is
    /// later than the moment of the backup before, even if a clock was wrong.
    pub at: i64,
    pub size: u64,
    /// `None` where it cannot be read.
    pub summary: Option<Summary>,
}

/// The backups of a store, oldest first.
pub fn list(store: &dyn BlobStore) -> Result<Vec<Listed>> {
    let mut stored = store.list(BlobKind::Backup)?;
    stored.sort_by_key(|stored| moment_and_id(&stored.blob));
    Ok(stored
        .into_iter()
        .map(|stored| with_summary(store, &stored))
        .collect())
}

/// The newest backup of a store.
pub fn newest(store: &dyn BlobStore) -> Result<Option<Listed>> {
    Ok(newest_stored(store)?.map(|stored| with_summary(store, &stored)))
}

pub(super) fn newest_stored(store: &dyn BlobStore) -> Result<Option<Stored>> {
    Ok(store
        .list(BlobKind::Backup)?
        .into_iter()
        .max_by_key(|stored| moment_and_id(&stored.blob)))
}

pub(super) fn moment_and_id(blob: &Blob) -> (i64, Digest) {
    if let Blob::Backup(at, digest) = *blob {
        (at, digest)
    } else {
        (i64::MIN, blob.digest())
    }
}

pub(super) fn with_summary(store: &dyn BlobStore, stored: &Stored) -> Listed {
    let beginning = usize::try_from(stored.size)
        .unwrap_or(usize::MAX)
        .min(MAX_SUMMARY_BYTES);
    let summary = store
        .get_range(&stored.blob, 0, beginning)
        .ok()
        .and_then(|bytes| Summary::peek(&bytes));
    Listed {
        blob: stored.blob,
        at: moment_and_id(&stored.blob).0,
        size: stored.size,
        summary,
    }
}
