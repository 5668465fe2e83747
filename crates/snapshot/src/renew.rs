//! Renews the tree of a run before its next attempt. The entries of the snapshot are restored.
//! Files that the last attempt made stay, and entries that it changed are moved aside.

use crate::layout::lay_out;
use crate::manifest::{Entry, Kind};
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::root::Root;
use crate::store::BlobStore;
use crate::walk::join;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Restores the entries of `root` in `target`, which must be a real folder. Changed entries are
/// moved below `aside`. Returns the paths that were restored.
pub fn renew(
    root: &Root,
    store: &dyn BlobStore,
    target: &Path,
    aside: &Path,
    stop: &AtomicBool,
) -> Result<Vec<String>> {
    let changed = changed(root, target);
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let paths: HashSet<&[u8]> = changed.iter().map(|entry| &*entry.path).collect();
    let fresh = target.with_file_name(".renewed");
    let _ = towline_host::filesystem::remove_tree(&fresh);
    lay_out(
        &root.only(|entry| paths.contains(&*entry.path)),
        store,
        &fresh,
        &Progress::default(),
        stop,
    )?;
    let folders: HashMap<&[u8], &Entry> = root
        .manifest
        .entries
        .iter()
        .filter(|entry| entry.kind == Kind::Folder)
        .map(|entry| (&*entry.path, entry))
        .collect();
    let mut opened: BTreeSet<&[u8]> = BTreeSet::new();
    for entry in &changed {
        let parent = parent(&entry.path);
        if !parent.is_empty() && opened.insert(parent) {
            set_mode(&join(target, parent), 0o700)?;
        }
        let (from, to, away) = (
            join(&fresh, &entry.path),
            join(target, &entry.path),
            join(aside, &entry.path),
        );
        let there = fs::symlink_metadata(&to).ok();
        if entry.kind == Kind::Folder {
            if there.as_ref().is_some_and(|meta| !meta.is_dir()) {
                move_aside(&to, &away)?;
            }
            if !there.is_some_and(|meta| meta.is_dir()) {
                fs::create_dir(&to).map_err(|error| Problem::file(&to, "renewed", error))?;
            }
            set_mode(&to, 0o700)?;
            opened.insert(&entry.path);
            continue;
        }
        if there.is_some() {
            move_aside(&to, &away)?;
        }
        let inside = from.parent().unwrap_or(&fresh);
        set_mode(inside, 0o700)?;
        fs::rename(&from, &to).map_err(|error| Problem::file(&to, "renewed", error))?;
    }
    // Innermost first, because the content of a folder cannot be reached once its mode is restored.
    for path in opened.into_iter().rev() {
        if let Some(entry) = folders.get(path) {
            set_mode(&join(target, path), entry.mode)?;
        }
    }
    let _ = towline_host::filesystem::remove_tree(&fresh);
    Ok(changed
        .iter()
        .map(|entry| String::from_utf8_lossy(&entry.path).into_owned())
        .collect())
}

/// The entries that changed, in the order of paths. Everything below a lost folder has changed.
fn changed<'r>(root: &'r Root, target: &Path) -> Vec<&'r Entry> {
    let mut lost: HashSet<&[u8]> = HashSet::new();
    let mut changed = Vec::new();
    for entry in &root.manifest.entries {
        if !lost.contains(parent(&entry.path)) && is_as_it_was(entry, target) {
            continue;
        }
        if entry.kind == Kind::Folder {
            lost.insert(&entry.path);
        }
        changed.push(entry);
    }
    changed
}

pub(crate) fn parent(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|byte| *byte == b'/')
        .map_or(&[], |at| &path[..at])
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| Problem::file(path, "renewed", error))
}

fn move_aside(path: &Path, aside: &Path) -> Result<()> {
    let failed = |error| Problem::file(path, "kept aside", error);
    if let Some(folder) = aside.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
    }
    fs::rename(path, aside).map_err(failed)
}

/// Whether kind, size, time and mode are unchanged. Content is not compared.
pub(crate) fn is_as_it_was(entry: &Entry, target: &Path) -> bool {
    let path = join(target, &entry.path);
    let Ok(meta) = fs::symlink_metadata(&path) else {
        return false;
    };
    match &entry.kind {
        // The time of a folder changes with its content.
        Kind::Folder => meta.is_dir(),
        Kind::File(_) => {
            let modified = meta
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(meta.mtime_nsec());
            meta.is_file()
                && meta.len() == entry.size()
                && modified == entry.modified
                && meta.mode() & crate::manifest::MODE_BITS == entry.mode
        }
        // Code has no hard links.
        Kind::Same(_) => false,
        Kind::Link(wanted) => fs::read_link(&path).is_ok_and(|found| {
            std::os::unix::ffi::OsStrExt::as_bytes(found.as_os_str()) == &**wanted
        }),
    }
}
