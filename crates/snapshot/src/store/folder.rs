//! A folder of this machine as a store.

use super::{Blob, BlobKind, BlobStore, Stored};
use crate::digest::Digest;
use crate::problem::{Problem, Result};
use rustix::fs::{AtFlags, CWD, RenameFlags};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A store in a folder of this machine, mode 0700.
#[derive(Debug)]
pub struct FolderStore {
    root: PathBuf,
    keeps_whole: bool,
    next: AtomicU64,
    /// Packs that are being read stay open, because a layout reads them in many parts.
    open: Mutex<Vec<(Digest, Arc<File>)>>,
}

/// Bytes that one call writes.
const WRITE_BYTES: usize = 256 << 10;
/// Packs that are kept open at once.
const MAX_OPEN_PACKS: usize = 64;

impl FolderStore {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            keeps_whole: true,
            next: AtomicU64::new(0),
            open: Mutex::new(Vec::new()),
        }
    }

    /// For content that is seldom laid out: no whole files are kept.
    #[must_use]
    pub fn without_whole_files(self) -> Self {
        Self {
            keeps_whole: false,
            ..self
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the unfinished files of processes that were killed. The caller must hold the store
    /// alone.
    pub fn clear_incoming(&self) {
        let _ = fs::remove_dir_all(self.root.join("incoming"));
    }

    /// Removes unfinished files that were last written before `moment`, in milliseconds since 1970.
    /// Processes that were killed left them. For a store that others may be using.
    pub fn clear_incoming_before(&self, moment: i64) {
        for entry in fs::read_dir(self.root.join("incoming"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let is_old = entry.metadata().is_ok_and(|meta| {
                Stamped(&meta)
                    .millis()
                    .is_some_and(|changed| changed < moment)
            });
            if is_old {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn file(&self, blob: &Blob) -> PathBuf {
        self.root.join(blob.path())
    }

    fn make_folder(path: &Path) -> Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| Problem::file(path, "made", error))
    }

    fn opened(&self, digest: Digest) -> Result<Arc<File>> {
        let lock = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = lock().iter().find(|(known, _)| *known == digest) {
            return Ok(file.clone());
        }
        let path = self.file(&Blob::Pack(digest));
        let file = match File::open(&path) {
            Ok(file) => Arc::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Problem::NoPack(digest));
            }
            Err(error) => return Err(Problem::file(&path, "read", error)),
        };
        let mut open = lock();
        if open.len() >= MAX_OPEN_PACKS {
            open.remove(0);
        }
        open.push((digest, file.clone()));
        Ok(file)
    }

    /// Writes a file under another name, syncs it, and renames it unless the name exists.
    fn put_file(&self, target: &Path, bytes: &[u8]) -> io::Result<()> {
        let incoming = self.root.join("incoming");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&incoming)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let part = incoming.join(format!("{}-{number}-{:p}", std::process::id(), self));
        let written = (|| {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o400)
                .open(&part)?;
            // On some machines the kernel is slow to find memory for longer writes.
            bytes
                .chunks(WRITE_BYTES)
                .try_for_each(|piece| file.write_all(piece))?;
            file.sync_data()?;
            match rustix::fs::renameat_with(CWD, &part, CWD, target, RenameFlags::NOREPLACE) {
                Err(rustix::io::Errno::EXIST) => Ok(()),
                // Some file systems lack this flag; a hard link refuses to replace as well.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    match fs::hard_link(&part, target) {
                        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                        _ => Ok(()),
                    }
                }
                other => other.map_err(Into::into),
            }
        })();
        let _ = rustix::fs::unlinkat(CWD, &part, AtFlags::empty());
        written?;
        match target.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl BlobStore for FolderStore {
    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn has(&self, blob: &Blob) -> Result<bool> {
        let path = self.file(blob);
        path.try_exists()
            .map_err(|error| Problem::file(&path, "looked at", error))
    }

    fn put(&self, blob: &Blob, bytes: &[u8]) -> Result<()> {
        let target = self.file(blob);
        if let Some(folder) = target.parent() {
            Self::make_folder(folder)?;
        }
        if target.exists() {
            return Ok(());
        }
        self.put_file(&target, bytes)
            .map_err(|error| Problem::file(&target, "written", error))
    }

    fn get(&self, blob: &Blob) -> Result<Option<Vec<u8>>> {
        let path = self.file(blob);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Problem::file(&path, "read", error)),
        }
    }

    fn get_range(&self, blob: &Blob, offset: u64, length: usize) -> Result<Vec<u8>> {
        let path = self.file(blob);
        let file = match blob {
            Blob::Pack(digest) => self.opened(*digest)?,
            _ => Arc::new(File::open(&path).map_err(|error| Problem::file(&path, "read", error))?),
        };
        let mut bytes = vec![0; length];
        match file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(Problem::damaged(blob.shown(), "it is cut short"))
            }
            Err(error) => Err(Problem::file(&path, "read", error)),
        }
    }

    fn list(&self, kind: BlobKind) -> Result<Vec<Stored>> {
        let folder = self.root.join(kind.folder());
        let mut stored = Vec::new();
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Problem::file(&folder, "read", error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| Problem::file(&folder, "read", error))?;
                let path = entry.path();
                let Ok(meta) = entry.metadata() else { continue };
                if meta.is_dir() {
                    folders.push(path);
                    continue;
                }
                let blob = path
                    .strip_prefix(&self.root)
                    .ok()
                    .and_then(|below| below.to_str())
                    .and_then(Blob::parse);
                let changed = Stamped(&meta).millis();
                stored.extend(blob.map(|blob| Stored {
                    blob,
                    size: meta.len(),
                    changed,
                }));
            }
        }
        stored.sort_by_key(|stored| stored.blob);
        Ok(stored)
    }

    fn missing(&self, packs: &[Digest]) -> Result<Vec<Digest>> {
        Ok(packs
            .iter()
            .filter(|pack| !self.file(&Blob::Pack(**pack)).exists())
            .copied()
            .collect())
    }

    fn whole_files(&self) -> Option<PathBuf> {
        self.keeps_whole.then(|| self.root.join("whole"))
    }

    fn delete(&self, blobs: &[Blob]) -> Result<()> {
        if blobs.iter().any(|blob| matches!(blob, Blob::Pack(_))) {
            // Whole files are only a cache of the packs; layouts make it again.
            let _ = fs::remove_dir_all(self.root.join("whole"));
        }
        for blob in blobs {
            let path = self.file(blob);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Problem::file(&path, "removed", error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

struct Stamped<'a>(&'a fs::Metadata);

impl Stamped<'_> {
    fn millis(&self) -> Option<i64> {
        use std::os::unix::fs::MetadataExt;
        self.0
            .mtime()
            .checked_mul(1000)
            .and_then(|millis| millis.checked_add(self.0.mtime_nsec() / 1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_object_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FolderStore::new(folder.path().join("store"));
        let blob = Blob::Root(Digest::of(b"x"));
        assert!(!store.has(&blob).expect("asks"));
        store.put(&blob, b"first").expect("put");
        store.put(&blob, b"second").expect("put again");
        assert_eq!(
            store.get(&blob).expect("read").as_deref(),
            Some(&b"first"[..])
        );
        assert_eq!(store.list(BlobKind::Root).expect("listed").len(), 1);
        assert_eq!(
            fs::read_dir(folder.path().join("store/incoming"))
                .expect("there")
                .count(),
            0
        );
        store.delete(&[blob, blob]).expect("deleted");
        assert_eq!(store.get(&blob).expect("read"), None);
    }

    #[test]
    fn old_unfinished_files_are_removed_and_new_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FolderStore::new(folder.path());
        let incoming = folder.path().join("incoming");
        fs::create_dir(&incoming).expect("made");
        for (name, seconds) in [("old", 1000), ("new", 3000)] {
            let file = File::create(incoming.join(name)).expect("made");
            file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
                .expect("set");
        }
        store.clear_incoming_before(2_000_000);
        assert!(!incoming.join("old").exists() && incoming.join("new").exists());
    }
}
