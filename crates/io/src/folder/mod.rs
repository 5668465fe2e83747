//! A folder as a datastore: below its root, exact names, whole files or none.
//!
//! A file that is not whole yet is `.NAME.tow-part` beside its place, locked by whoever writes it.

mod walk;

use crate::buffer::Buffer;
use crate::data::{
    Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums, UnsupportedEntry,
};
use crate::transfer::{BLOCK_BYTES, hash};
use crate::{sparse, tree::Tree};
use async_trait::async_trait;
use bytes::Bytes;
use rustix::fs::{FileType, Timespec, Timestamps};
use std::any::Any;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use towline_core::quantity::Memory;
use towline_core::{Error, Result, Retry};
use walk::{Found, Walker};

/// Objects of one page of a listing.
const PAGE_ENTRIES: usize = 5_000;

#[derive(Debug, Clone)]
pub struct Folder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    tree: Tree,
    /// Part files that are being written, by key.
    parts: Mutex<HashMap<String, Part>>,
    /// A listing that goes on, by the key it stopped at.
    walk: Mutex<Option<(String, Walker)>>,
}

#[derive(Debug, Clone)]
struct Part {
    file: Arc<File>,
    shape: Shape,
    was_there: bool,
}

impl Folder {
    /// A folder of this machine, for transfers; it is made when something is written.
    pub fn local(root: impl Into<PathBuf>) -> Self {
        Self::called(String::new(), root.into())
    }

    /// A configured datastore: a root that is not there is an error, for a share may not be
    /// mounted.
    pub fn configured(name: &str, root: &Path) -> Result<Self> {
        match std::fs::metadata(root) {
            Ok(metadata) if metadata.is_dir() => Ok(Self::called(name.to_owned(), root.to_owned())),
            Ok(_) => Err(Error::config(format!(
                "datastore `{name}`: {} is not a folder",
                root.display()
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::unreachable(
                format!("datastore `{name}`: there is no {}", root.display()),
            )
            .hint("is it mounted? else make it")),
            Err(error) => Err(Error::unreachable(format!(
                "datastore `{name}`: {} cannot be used",
                root.display()
            ))
            .source_error(error)),
        }
    }

    fn called(name: String, root: PathBuf) -> Self {
        Self(Arc::new(Inner {
            name,
            tree: Tree::new(root),
            parts: Mutex::default(),
            walk: Mutex::default(),
        }))
    }

    /// Runs `act` where waiting for a disk holds up nobody.
    async fn off<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.0.clone();
        tokio::task::spawn_blocking(move || act(&inner))
            .await
            .unwrap_or_else(|error| Err(Error::bug("a task broke").source_error(error)))
    }
}

impl Inner {
    fn path(&self, key: &Key) -> String {
        self.tree.root().join(key.as_str()).display().to_string()
    }

    fn failed(&self, key: &Key, error: io::Error) -> Error {
        let path = self.path(key);
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return Error::refused(format!(
                "{path}: a link is in the way; links are not followed"
            ));
        }
        match error.kind() {
            io::ErrorKind::NotFound => Error::not_found(format!("there is no {path}")),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::refused(format!("no space left for {path}"))
                    .source_error(error)
                    .hint("make room; the same command goes on where it stopped")
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Error::refused(format!("{path} cannot be used"))
                    .source_error(error)
                    .hint("look at the owner and mode of the folder")
            }
            io::ErrorKind::NotADirectory => Error::refused(format!(
                "{path}: a file is in the way where a folder has to be"
            )),
            io::ErrorKind::IsADirectory | io::ErrorKind::DirectoryNotEmpty => {
                Error::refused(format!("{path}: a folder is in the way of this file"))
            }
            io::ErrorKind::ResourceBusy => {
                Error::refused(format!("{path}: another tow is writing it")).retry(Retry::Later)
            }
            _ => Error::refused(format!("{path} failed")).source_error(error),
        }
    }

    fn read(&self, key: &Key, range: &Range<u64>, version: Option<&str>) -> Result<Bytes> {
        let failed = |error| self.failed(key, error);
        let changed = || {
            Error::refused(format!("{} changed while it was read", self.path(key)))
                .hint("try again when nobody writes to it")
        };
        let file = self.tree.open(key).map_err(failed)?;
        let before = file.metadata().map_err(failed)?;
        if !before.is_file() {
            return Err(Error::not_found(format!(
                "{} is not a file",
                self.path(key)
            )));
        }
        if version.is_some_and(|version| version != walk::version(&before)) {
            return Err(changed());
        }
        let length = usize::try_from(range.end - range.start)
            .map_err(|_| Error::bug("a block is too large"))?;
        let is_sparse = before.blocks() * 512 < before.len();
        let mut bytes = Buffer::new(length);
        if is_sparse && sparse::is_hole(&file, range) {
            bytes.as_mut().fill(0);
        } else {
            file.read_exact_at(bytes.as_mut(), range.start)
                .map_err(|error| {
                    if error.kind() == io::ErrorKind::UnexpectedEof {
                        changed()
                    } else {
                        failed(error)
                    }
                })?;
        }
        if walk::version(&file.metadata().map_err(failed)?) != walk::version(&before) {
            return Err(changed());
        }
        Ok(bytes.freeze())
    }

    fn write(&self, key: &Key, bytes: &[u8], marks: &Marks, create: bool) -> Result<bool> {
        let failed = |error| self.failed(key, error);
        let (file, _) = self.tree.open_part(key).map_err(failed)?;
        let act = || -> io::Result<bool> {
            file.set_len(0)?;
            file.set_len(bytes.len() as u64)?;
            sparse::write_at(&file, 0, bytes)?;
            set_modified(&file, marks)?;
            if create {
                // Whoever must not replace it counts on it: it is there for good.
                file.sync_data()?;
            }
            self.tree.place_part(key, create)
        };
        act().map_err(|error| {
            let _ = self.tree.remove_part(key);
            failed(error)
        })
    }

    fn open(&self, key: &Key, shape: Shape) -> Result<()> {
        let failed = |error| self.failed(key, error);
        // A second try finds the file of the first, which is still ours.
        let ours = self
            .parts
            .lock()
            .expect("no panic while held")
            .remove(key.as_str());
        let (file, was_there) = match ours {
            Some(part) => (part.file, true),
            None => self
                .tree
                .open_part(key)
                .map(|(file, was_there)| (Arc::new(file), was_there))
                .map_err(failed)?,
        };
        let held = file.metadata().map_err(failed)?.blocks() * 512;
        if let Ok(room) = rustix::fs::fstatvfs(&*file) {
            let free = room.f_bavail.saturating_mul(room.f_frsize);
            if free.saturating_add(held) < shape.size {
                if !was_there {
                    let _ = self.tree.remove_part(key);
                }
                let error = Error::refused(format!(
                    "no space for {}: it needs {}, free are {}",
                    self.path(key),
                    Memory(shape.size),
                    Memory(free)
                ));
                return Err(error.hint("make room; the same command goes on where it stopped"));
            }
        }
        file.set_len(shape.size).map_err(failed)?;
        self.parts.lock().expect("no panic while held").insert(
            key.to_string(),
            Part {
                file,
                shape,
                was_there,
            },
        );
        Ok(())
    }

    fn part(&self, key: &Key) -> Result<Part> {
        self.parts
            .lock()
            .expect("no panic while held")
            .get(key.as_str())
            .cloned()
            .ok_or_else(|| Error::bug(format!("{key} is not being written")))
    }

    /// What an earlier writer left, by what it holds.
    fn blocks(&self, key: &Key) -> Result<Vec<Block>> {
        let Part {
            file,
            shape,
            was_there,
        } = self.part(key)?;
        let mut found = Vec::new();
        let mut bytes = vec![0; usize::try_from(shape.block.min(shape.size)).unwrap_or(0)];
        for index in (0..shape.blocks()).filter(|_| was_there) {
            let range = shape.range(index);
            if sparse::is_hole(&file, &range) {
                continue;
            }
            let size = range.end - range.start;
            let bytes = &mut bytes[..usize::try_from(size).unwrap_or(0)];
            file.read_exact_at(bytes, range.start)
                .map_err(|error| self.failed(key, error))?;
            let digest = Some(hash::sums(shape, index, bytes).digest());
            found.push(Block {
                index,
                size,
                digest,
                tag: String::new(),
            });
        }
        Ok(found)
    }

    fn finish(&self, key: &Key, marks: &Marks) -> Result<()> {
        let failed = |error| self.failed(key, error);
        let Part { file, .. } = self.part(key)?;
        if let (Some(expected), None) = (marks.md5, marks.blake3)
            && md5_of(&file).map_err(failed)? != expected
        {
            return Err(Error::unreachable(format!(
                "{key}: what arrived is not what the service says (MD5)"
            )));
        }
        set_modified(&file, marks).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        self.tree.place_part(key, false).map_err(failed)?;
        self.parts
            .lock()
            .expect("no panic while held")
            .remove(key.as_str());
        Ok(())
    }

    /// Whether a folder can be entered without following a link on the way: what lies behind one is
    /// not this store's.
    fn can_enter(&self, prefix: &str) -> bool {
        let Ok(inside) = Key::new(format!("{prefix}x")) else {
            return prefix.is_empty();
        };
        match self.tree.folder(&inside, false) {
            Ok(_) => true,
            // Other failures are told by whoever reads it.
            Err(error) => {
                !matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) && error.raw_os_error() != Some(rustix::io::Errno::LOOP.raw_os_error())
            }
        }
    }

    fn list(&self, prefix: &str, from: Option<&str>) -> Page {
        if !self.can_enter(prefix) {
            return Page::default();
        }
        let kept = self.walk.lock().expect("no panic while held").take();
        let mut walker = match (kept, from) {
            (Some((at, walker)), Some(from)) if at == from => walker,
            _ => Walker::new(self.tree.root(), prefix, from),
        };
        let mut page = Page::default();
        for found in walker.by_ref() {
            match found {
                Found::Object(object) => page.objects.push(object),
                Found::Odd(odd) => page.unsupported.push(odd),
                Found::Empty(folder) => page.marks.push(FolderMark {
                    folder,
                    has_slash: true,
                }),
            }
            if page.objects.len() == PAGE_ENTRIES {
                break;
            }
        }
        if page.objects.len() == PAGE_ENTRIES
            && let Some(last) = page.objects.last()
        {
            page.next = Some(last.key.to_string());
            *self.walk.lock().expect("no panic while held") = Some((last.key.to_string(), walker));
        }
        page
    }

    /// One level. Links to folders are not entered, so they are no folders here.
    fn list_level(&self, prefix: &str) -> Result<Page> {
        let mut page = Page::default();
        if !self.can_enter(prefix) {
            return Ok(page);
        }
        let path = self.tree.root().join(prefix);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(page);
            }
            Err(error) => {
                return Err(Error::refused(format!("{} cannot be read", path.display()))
                    .source_error(error));
            }
        };
        for entry in entries.flatten() {
            let raw = entry.file_name();
            let Some(name) = raw
                .to_str()
                .filter(|name| Key::new(*name).is_ok() && !crate::tree::is_part(name))
            else {
                continue;
            };
            match (
                entry.file_type(),
                std::fs::metadata(entry.path()),
                Key::new(format!("{prefix}{name}")),
            ) {
                (Ok(kind), _, _) if kind.is_dir() => page.folders.push(name.to_owned()),
                (Ok(kind), _, Ok(key)) if kind.is_symlink() && !self.tree.stays_below(&key) => {
                    page.unsupported.push(UnsupportedEntry {
                        name: key.to_string(),
                        why: walk::OUTSIDE_LINK_REASON.to_owned(),
                        is_failure: false,
                    });
                }
                (Ok(_), Ok(metadata), Ok(key)) if metadata.is_file() => {
                    page.objects.push(walk::object(key, &metadata))
                }
                _ => {}
            }
        }
        page.folders.sort();
        page.objects.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(page)
    }
}

fn set_modified(file: &File, marks: &Marks) -> io::Result<()> {
    let Some((seconds, nanos)) = marks.modified else {
        return Ok(());
    };
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanos.into(),
    };
    Ok(rustix::fs::futimens(
        file,
        &Timestamps {
            last_access: time,
            last_modification: time,
        },
    )?)
}

fn md5_of(file: &File) -> io::Result<[u8; 16]> {
    use md5::Digest;
    let mut hasher = md5::Md5::new();
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        match file.read_at(&mut bytes, at)? {
            0 => return Ok(hasher.finalize().into()),
            count => {
                hasher.update(&bytes[..count]);
                at += count as u64;
            }
        }
    }
}

#[async_trait]
impl Data for Folder {
    fn place(&self) -> String {
        let root = self.0.tree.root().display();
        if self.0.name.is_empty() {
            root.to_string()
        } else {
            format!("{} (folder {root})", self.0.name)
        }
    }
    fn limits(&self) -> StoreLimits {
        StoreLimits {
            blocks: u32::MAX,
            block: 2 * BLOCK_BYTES,
            near: true,
            marks_first: false,
            remembers: true,
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }

    async fn list(&self, prefix: &str, deep: bool, from: Option<&str>) -> Result<Page> {
        let (prefix, from) = (prefix.to_owned(), from.map(str::to_owned));
        self.off(move |inner| {
            if deep {
                Ok(inner.list(&prefix, from.as_deref()))
            } else {
                inner.list_level(&prefix)
            }
        })
        .await
    }

    async fn head(&self, key: &Key) -> Result<Option<Object>> {
        let key = key.clone();
        self.off(move |inner| match inner.tree.kind(&key) {
            Ok(FileType::RegularFile | FileType::Symlink) => {
                match inner.tree.open(&key).and_then(|file| file.metadata()) {
                    Ok(metadata) => Ok(metadata.is_file().then(|| walk::object(key, &metadata))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(inner.failed(&key, error)),
                }
            }
            Ok(_) => Ok(None),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(inner.failed(&key, error)),
        })
        .await
    }

    async fn read(&self, key: &Key, range: Range<u64>, version: Option<&str>) -> Result<Bytes> {
        let (key, version) = (key.clone(), version.map(str::to_owned));
        self.off(move |inner| inner.read(&key, &range, version.as_deref()))
            .await
    }

    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool> {
        let (key, marks) = (key.clone(), marks.clone());
        self.off(move |inner| inner.write(&key, &bytes, &marks, create))
            .await
    }

    async fn open(&self, key: &Key, shape: Shape, _: &Marks, _: Option<&str>) -> Result<String> {
        let key = key.clone();
        self.off(move |inner| inner.open(&key, shape).map(|()| String::new()))
            .await
    }

    async fn blocks(&self, key: &Key, _: &str) -> Result<Option<Vec<Block>>> {
        let key = key.clone();
        self.off(move |inner| inner.blocks(&key).map(Some)).await
    }

    async fn put(
        &self,
        key: &Key,
        _: &str,
        index: u32,
        bytes: Bytes,
        sums: &Sums,
    ) -> Result<Block> {
        let (key, digest) = (key.clone(), Some(sums.digest()));
        self.off(move |inner| {
            let Part { file, shape, .. } = inner.part(&key)?;
            sparse::write_at(&file, shape.range(index).start, &bytes)
                .map_err(|error| inner.failed(&key, error))?;
            Ok(Block {
                index,
                size: bytes.len() as u64,
                digest,
                tag: String::new(),
            })
        })
        .await
    }

    async fn finish(&self, key: &Key, _: &str, _: &[Block], marks: &Marks) -> Result<()> {
        let (key, marks) = (key.clone(), marks.clone());
        self.off(move |inner| inner.finish(&key, &marks)).await
    }

    async fn abandon(&self, key: &Key, _: &str) -> Result<()> {
        let key = key.clone();
        self.off(move |inner| {
            inner
                .parts
                .lock()
                .expect("no panic while held")
                .remove(key.as_str());
            inner
                .tree
                .remove_part(&key)
                .map_err(|error| inner.failed(&key, error))
        })
        .await
    }

    async fn delete(&self, keys: &[Key]) -> Result<()> {
        let keys = keys.to_vec();
        self.off(move |inner| {
            keys.iter().try_for_each(|key| {
                inner
                    .tree
                    .remove(key)
                    .map_err(|error| inner.failed(key, error))
            })?;
            inner.tree.prune(&keys);
            Ok(())
        })
        .await
    }

    async fn delete_marks(&self, marks: &[FolderMark]) -> Result<()> {
        // What would lie in it is gone: it goes, and what is empty above it.
        let gone: Vec<Key> = marks
            .iter()
            .filter_map(|mark| Key::new(format!("{}/gone", mark.folder)).ok())
            .collect();
        self.off(move |inner| {
            inner.tree.prune(&gone);
            Ok(())
        })
        .await
    }

    async fn copy_from(&self, _: &dyn Data, _: &Key, _: &Key, _: u64) -> Result<bool> {
        Ok(false)
    }

    async fn url(&self, key: &Key, _: Duration) -> Result<String> {
        let path = self.0.tree.root().join(key.as_str());
        url::Url::from_file_path(&path)
            .map(String::from)
            .map_err(|()| Error::refused(format!("{} has no address", path.display())))
    }
}
