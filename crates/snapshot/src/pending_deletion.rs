//! Packs that are about to be deleted. They are put on a list first, so that a snapshot that is
//! taken meanwhile does not use them.

use crate::digest::Digest;
use crate::problem::Result;
use crate::store::{Blob, BlobKind, BlobStore};

/// Bytes of one digest in a list.
const DIGEST_BYTES: usize = 32;

/// The lists of a store, each with its moment in milliseconds since 1970.
pub(crate) fn lists(store: &dyn BlobStore) -> Result<Vec<(i64, Blob)>> {
    let stored = store.list(BlobKind::PendingDeletion)?.into_iter();
    Ok(stored
        .filter_map(|list| {
            if let Blob::PendingDeletion(at, _) = list.blob {
                Some((at, list.blob))
            } else {
                None
            }
        })
        .collect())
}

/// The packs on one list. A list that was deleted names none. An incomplete digest at its end is
/// ignored, and the next prune lists that pack again.
pub(crate) fn packs(store: &dyn BlobStore, list: &Blob) -> Result<Vec<Digest>> {
    let bytes = store.get(list)?.unwrap_or_default();
    Ok(bytes
        .as_chunks::<DIGEST_BYTES>()
        .0
        .iter()
        .map(|digest| Digest(*digest))
        .collect())
}

/// The packs on lists of `moment` or later, each with the moment of the first list that names it.
pub(crate) fn packs_since(store: &dyn BlobStore, moment: i64) -> Result<Vec<(Digest, i64)>> {
    let mut found = Vec::new();
    for (at, list) in lists(store)?.into_iter().filter(|(at, _)| *at >= moment) {
        found.extend(packs(store, &list)?.into_iter().map(|pack| (pack, at)));
    }
    Ok(found)
}

/// Puts `packs` on a list. An empty list is not written.
pub(crate) fn announce(store: &dyn BlobStore, packs: &[Digest], now: i64) -> Result<()> {
    if packs.is_empty() {
        return Ok(());
    }
    let bytes: Vec<u8> = packs.iter().flat_map(|pack| pack.0).collect();
    store.put(&Blob::PendingDeletion(now, Digest::of(&bytes)), &bytes)
}
