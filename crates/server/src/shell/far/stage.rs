//! Uploads the code of a submission to a cluster: only what is missing there.

use towline_core::cluster::Cluster;
use towline_core::plan::Plan;
use towline_core::{Error, Result};
use towline_snapshot::digest::Digest;
use towline_snapshot::root::read_root;
use towline_snapshot::store::{Blob, BlobStore, FolderStore};
use towline_wire::layout::StateFolder;

pub(super) fn stage(backend: &dyn Cluster, state: &StateFolder, plan: &Plan) -> Result<()> {
    let Some(code) = plan
        .resolved
        .code
        .as_ref()
        .filter(|_| plan.adopted.is_none())
    else {
        return Ok(());
    };
    let id = code
        .snapshot
        .as_deref()
        .and_then(Digest::parse)
        .ok_or_else(|| Error::bug("the plan names no snapshot"))?;
    bring_code(backend, state, id)
}

/// Uploads the packs, then the root, because a root promises that its packs are complete.
pub fn bring_code(backend: &dyn Cluster, state: &StateFolder, id: Digest) -> Result<()> {
    // The root is there, so its packs are too.
    if backend.missing(vec![Blob::Root(id).path()])?.is_empty() {
        return Ok(());
    }
    let store = FolderStore::new(state.snapshots());
    let root = read_root(&store, &id)?;
    let mut blobs: Vec<Blob> = root.packs.iter().copied().map(Blob::Pack).collect();
    blobs.push(Blob::Root(id));
    let names: Vec<String> = blobs.iter().map(Blob::path).collect();
    let missing = backend.missing(names)?;
    let gone = || {
        Error::not_found("a part of the code is gone from this machine")
            .hint("submit again from the folder")
    };
    let mut todo = blobs
        .iter()
        .filter(|blob| missing.contains(&blob.path()))
        .peekable();
    if todo.peek().is_none() {
        return Ok(());
    }
    backend.put(&mut todo.map(|blob| Ok((blob.path(), store.get(blob)?.ok_or_else(gone)?))))
}
