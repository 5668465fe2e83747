//! The tree of a run before its next attempt: what the snapshot holds is made as it was, what the
//! last attempt made beside it stays, and what it changed is kept aside.

use crate::layout::lay_out;
use crate::manifest::{Entry, Kind};
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::root::Root;
use crate::store::BlobStore;
use crate::walk::join;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Makes the entries of `root` in `target` as they were. What stands in the way is moved below
/// `aside`. Gives the paths that were renewed.
pub fn renew(root: &Root, store: &dyn BlobStore, target: &Path, aside: &Path, stop: &AtomicBool) -> Result<Vec<String>> {
    let changed: Vec<&Entry> = root.manifest.entries.iter().filter(|entry| !is_as_it_was(entry, target)).collect();
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let paths: std::collections::HashSet<&[u8]> = changed.iter().map(|entry| &*entry.path).collect();
    let fresh = target.with_file_name(".renewed");
    let _ = towline_host::filesystem::remove_tree(&fresh);
    lay_out(&root.only(|entry| paths.contains(&*entry.path)), store, &fresh, &Progress::default(), stop)?;
    for entry in &changed {
        let (from, to) = (join(&fresh, &entry.path), join(target, &entry.path));
        if entry.kind == Kind::Folder {
            renew_folder(entry, &to, &join(aside, &entry.path))?;
            continue;
        }
        if fs::symlink_metadata(&to).is_ok() {
            move_aside(&to, &join(aside, &entry.path))?;
        }
        fs::rename(&from, &to).map_err(|error| Problem::file(&to, "renewed", error))?;
    }
    let _ = towline_host::filesystem::remove_tree(&fresh);
    Ok(changed.iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect())
}

fn renew_folder(entry: &Entry, path: &Path, aside: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => move_aside(path, aside)?,
        Err(_) => {}
    }
    if !path.is_dir() {
        fs::create_dir(path).map_err(|error| Problem::file(path, "renewed", error))?;
    }
    // Its owner keeps the right to write until what lies in it is renewed, too.
    fs::set_permissions(path, fs::Permissions::from_mode(entry.mode | 0o700)).map_err(|error| Problem::file(path, "renewed", error))
}

fn move_aside(path: &Path, aside: &Path) -> Result<()> {
    let failed = |error| Problem::file(path, "kept aside", error);
    if let Some(folder) = aside.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    fs::rename(path, aside).map_err(failed)
}

/// By kind, size, time and mode: whoever changes a file and sets all of them back means it.
fn is_as_it_was(entry: &Entry, target: &Path) -> bool {
    let path = join(target, &entry.path);
    let Ok(meta) = fs::symlink_metadata(&path) else { return false };
    match &entry.kind {
        // The time of a folder changes with what lies in it.
        Kind::Folder => meta.is_dir(),
        Kind::File(_) => {
            let modified = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
            meta.is_file() && meta.len() == entry.size() && modified == entry.modified && meta.mode() & crate::manifest::MODE_BITS == entry.mode
        }
        Kind::Link(wanted) => fs::read_link(&path).is_ok_and(|found| std::os::unix::ffi::OsStrExt::as_bytes(found.as_os_str()) == &**wanted),
    }
}
