//! Trees for the tests, and comparisons of them.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use towline_snapshot::digest::Digest;
use towline_snapshot::layout::lay_out;
use towline_snapshot::pack::Compression;
use towline_snapshot::problem::Result;
use towline_snapshot::progress::Progress;
use towline_snapshot::root::read_root;
use towline_snapshot::rules::Rules;
use towline_snapshot::store::{BlobStore, FolderStore};
use towline_snapshot::take::{Options, Taken, take};
use towline_snapshot::walk::Limits;

/// A tree, a store and caches in a folder of their own.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: FolderStore,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("tree")).expect("made");
        let store = FolderStore::new(folder.path().join("store"));
        Self { folder, store }
    }
    pub(crate) fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }
    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let file = self.tree().join(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        fs::write(file, bytes).expect("written");
    }
    pub(crate) fn link(&self, path: &str, target: &str) {
        symlink(target, self.tree().join(path)).expect("linked");
    }
    pub(crate) fn options(&self) -> Options {
        Options {
            limits: Limits::none(),
            compression: Compression::QUICK,
            name: "tree".into(),
            now: towline_host::clock::nanoseconds(),
            stat_cache: self.folder.path().join("stat"),
            index: self.folder.path().join("store/index"),
        }
    }
    pub(crate) fn take_with(&self, options: &Options) -> Result<Taken> {
        let rules = Rules::new(&self.tree(), &[], []).expect("rules");
        take(
            &self.tree(),
            &rules,
            &self.store,
            options,
            &Progress::default(),
        )
    }
    pub(crate) fn take(&self) -> Taken {
        self.take_with(&self.options()).expect("taken")
    }
    pub(crate) fn lay(&self, id: &Digest, name: &str) -> Result<PathBuf> {
        lay(&self.store, id, &self.folder.path().join(name))
    }
    /// Lays a snapshot out and compares the result with the tree.
    pub(crate) fn round_trip(&self, id: &Digest, name: &str) {
        let target = self.lay(id, name).expect("laid out");
        assert_eq!(describe(&self.tree()), describe(&target));
    }
}

pub(crate) fn lay(store: &dyn BlobStore, id: &Digest, target: &Path) -> Result<PathBuf> {
    let root = read_root(store, id)?;
    lay_out(
        &root,
        store,
        target,
        &Progress::default(),
        &AtomicBool::new(false),
    )?;
    Ok(target.to_owned())
}

/// Mode, time and content or target of every entry, by path.
pub(crate) fn describe(root: &Path) -> BTreeMap<Vec<u8>, (u32, i64, Vec<u8>)> {
    let mut seen = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("read") {
            let path = entry.expect("read").path();
            let meta = fs::symlink_metadata(&path).expect("there");
            let below = path
                .strip_prefix(root)
                .expect("below")
                .as_os_str()
                .as_bytes()
                .to_vec();
            let time = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
            let content = if meta.is_symlink() {
                fs::read_link(&path)
                    .expect("a link")
                    .into_os_string()
                    .into_vec()
            } else if meta.is_dir() {
                folders.push(path);
                Vec::new()
            } else {
                fs::read(&path).expect("read")
            };
            seen.insert(below, (meta.permissions().mode(), time, content));
        }
    }
    seen
}

/// Bytes that do not compress and are the same each time.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[4]
        })
        .collect()
}

pub(crate) fn os_name(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}
