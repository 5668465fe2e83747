//! Takes a snapshot of the code, into the local store or another one.

use super::ahead::Ahead;
use super::survey::Survey;
use crate::flow::outside::{Outside, watched};
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use towline_core::{Error, Result};
use towline_host::lock;
use towline_snapshot::progress::Progress;
use towline_snapshot::store::{BlobStore, FolderStore};
use towline_snapshot::take::{Options, Taken, take_walked};
use towline_snapshot::walk::Limits;
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;

/// The local store, with the lock that keeps a prune away.
#[derive(Debug)]
pub struct LocalStore {
    pub store: FolderStore,
    _lock: File,
}

/// Opens the local store with a shared lock: others may add to it, and nobody prunes it.
pub fn local_store(state: &StateFolder) -> Result<LocalStore> {
    let lock = open_lock(state)?;
    lock::lock_shared(&lock)
        .map_err(|error| Error::from_io("the snapshots cannot be locked", error))?;
    Ok(LocalStore {
        store: FolderStore::new(state.snapshots()),
        _lock: lock,
    })
}

pub fn open_lock(state: &StateFolder) -> Result<File> {
    let failed =
        |error| Error::from_io(format!("{} cannot be used", state.root().display()), error);
    towline_host::filesystem::private_folder(state.root()).map_err(failed)?;
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(state.snapshots_lock())
        .map_err(failed)
}

/// Takes the snapshot into `store`. It is complete when this returns.
pub fn take(
    outside: &dyn Outside,
    survey: Survey,
    store: &dyn BlobStore,
    index: PathBuf,
) -> Result<Taken> {
    let state = outside.state()?;
    let name = survey
        .root
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let options = Options {
        limits: Limits::none(),
        compression: towline_snapshot::pack::Compression::QUICK,
        name,
        now: towline_host::clock::now().0.saturating_mul(1_000_000),
        stat_cache: state.stat_cache(&survey.tree_name()),
        index,
    };
    let progress = Progress::default();
    let (root, walked) = (survey.root, survey.walked);
    let taken = watched(outside, "snapshot", &progress, || {
        take_walked(&root, walked, store, &options, &progress)
    })?;
    for path in &taken.unsteady {
        (outside.terminal().tell)(&format!("warning: {path} changed while it was read"));
    }
    Ok(taken)
}

/// Takes the snapshot into the local store.
pub fn take_here(outside: &dyn Outside, survey: Survey, store: &LocalStore) -> Result<Taken> {
    take(outside, survey, &store.store, local_index(outside)?)
}

fn local_index(outside: &dyn Outside) -> Result<PathBuf> {
    Ok(outside.state()?.snapshots().join("index"))
}

/// Takes the snapshot into the local store, and sends new packs to a far cluster meanwhile.
pub fn take_ahead(
    outside: &dyn Outside,
    survey: Survey,
    store: &LocalStore,
    named: &NamedCluster,
) -> Result<Taken> {
    let ahead = Ahead::new(&store.store, outside.opener(named)?);
    let taken = take(outside, survey, &ahead, local_index(outside)?);
    ahead.finish();
    taken
}
