//! Content of frozen code on its way into the stage folder.

use super::failed;
use std::io::{self, Read};
use towline_core::{Error, Result};
use towline_snapshot::digest::Digest;
use towline_snapshot::store::{Blob, BlobStore, FolderStore};
use towline_wire::stage::StageFolder;

/// Nothing larger is sent in one piece.
const LARGEST: u64 = 256 << 20;

pub(super) fn receive(input: &mut impl Read, size: u64) -> io::Result<Vec<u8>> {
    if size > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a blob is too large"));
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn blob(name: &str) -> Result<Blob> {
    Blob::parse(name).ok_or_else(|| Error::bug(format!("`{name}` is no blob of a snapshot")))
}

/// Those that are not there.
pub(super) fn missing(stage: &StageFolder, blobs: Vec<String>) -> Result<Vec<String>> {
    let store = FolderStore::new(stage.snapshots());
    let mut missing = Vec::new();
    for name in blobs {
        if !store.has(&blob(&name)?)? {
            missing.push(name);
        }
    }
    Ok(missing)
}

/// Kept whole or not at all, and only if it is what its name says.
pub(super) fn keep(stage: &StageFolder, name: &str, bytes: &[u8]) -> Result<()> {
    let blob = blob(name)?;
    if let Blob::Pack(digest) = &blob
        && Digest::of(bytes) != *digest
    {
        return Err(Error::unreachable("a pack arrived damaged").hint("try again"));
    }
    let store = FolderStore::new(stage.snapshots());
    store.put(&blob, bytes).map_err(|problem| match problem {
        towline_snapshot::problem::Problem::File { path, source, .. } => failed(&path, source),
        other => other.into(),
    })
}
