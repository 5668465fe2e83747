//! Removes the code of a run that has ended. Every run has a tree of its own in the stage folder; a
//! thousand runs of one snapshot would fill a home. Files that are unchanged since the snapshot are
//! removed; files that the run wrote are kept. A record is written before the first file goes, so
//! that the tree can be read as before: from the folder, else from the snapshot.

use super::records::{Due, Records};
use std::fs;
use std::io;
use towline_core::RunId;
use towline_snapshot::digest::Digest;
use towline_snapshot::root::{Root, read_root};
use towline_snapshot::shed::{absent, shed};
use towline_snapshot::store::FolderStore;
use towline_wire::stage::{CodeRemoved, Order, RunFolder, StageFolder};

/// The record of a run whose code was removed.
pub fn removed(folder: &RunFolder) -> io::Result<Option<CodeRemoved>> {
    match fs::read(folder.code_removed()) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The snapshot that a record names.
pub fn snapshot(stage: &StageFolder, record: &CodeRemoved) -> io::Result<(FolderStore, Root)> {
    let store = FolderStore::new(stage.snapshots());
    let id =
        Digest::parse(&record.snapshot).ok_or_else(|| io::Error::other("no snapshot is named"))?;
    let root = read_root(&store, &id).map_err(io::Error::other)?;
    Ok((store, root))
}

/// Removes the code if the run has ended. If `stop` interrupts it, the next call continues.
pub fn remove(
    stage: &StageFolder,
    order: &Order,
    run: &RunId,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let folder = stage.run(run);
    let tree = folder.code();
    let Some(id) = order
        .plan
        .resolved
        .code
        .as_ref()
        .and_then(|code| code.snapshot.clone())
    else {
        return Ok(());
    };
    let known = removed(&folder)?;
    if known.as_ref().is_some_and(|record| record.is_done)
        || !tree.symlink_metadata().is_ok_and(|meta| meta.is_dir())
    {
        return Ok(());
    }
    let found = Records::read(&folder)?;
    if found.attempts.is_empty()
        || !matches!(
            found.due(order.plan.resolved.retry.as_ref()),
            Due::Nothing(_)
        )
    {
        return Ok(());
    }
    let record = CodeRemoved {
        snapshot: id,
        absent: Vec::new(),
        is_done: false,
    };
    let (_, root) = snapshot(stage, &record)?;
    let record = if let Some(record) = known {
        record
    } else {
        let record = CodeRemoved {
            absent: absent(&root, &tree),
            ..record
        };
        towline_host::once::create(&folder.code_removed(), &serde_json::to_vec(&record)?)?;
        // The first caller has seen the whole tree.
        removed(&folder)?.ok_or_else(|| io::Error::other("a record is gone"))?
    };
    if shed(&root, &tree, stop).map_err(io::Error::other)? {
        towline_host::once::replace(
            &folder.code_removed(),
            &serde_json::to_vec(&CodeRemoved {
                is_done: true,
                ..record
            })?,
        )?;
    }
    Ok(())
}
