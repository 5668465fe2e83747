//! A folder as a datastore. Nothing outside its root is touched, and every file is whole.
//!
//! A file that is being written is `.NAME.tow-part` beside its place, locked by its writer.

mod files;
mod list;
mod walk;

use crate::data::{Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums};
use crate::transfer::BLOCK_BYTES;
use crate::{sparse, tree::Tree};
use async_trait::async_trait;
use bytes::Bytes;
use rustix::fs::FileType;
use std::any::Any;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use towline_core::{Error, Result};
use walk::Walker;

#[derive(Debug, Clone)]
pub struct Folder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    tree: Tree,
    /// Part files that are being written, by key.
    parts: Mutex<HashMap<String, Part>>,
    /// The listing that the next page continues, and the key that it stopped at.
    walk: Mutex<Option<(String, Walker)>>,
}

#[derive(Debug, Clone)]
struct Part {
    file: Arc<File>,
    shape: Shape,
    was_there: bool,
}

impl Folder {
    /// A folder of this machine, for transfers. It is made when a file is written.
    pub fn local(root: impl Into<PathBuf>) -> Self {
        Self::called(String::new(), root.into())
    }

    /// A configured datastore. A missing root is an error, because a share may not be mounted.
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

    /// Runs `act` on a thread that may wait for a disk.
    async fn on_disk_thread<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.0.clone();
        tokio::task::spawn_blocking(move || act(&inner))
            .await
            .unwrap_or_else(|error| Err(Error::bug("a task broke").source_error(error)))
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
        self.on_disk_thread(move |inner| {
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
        self.on_disk_thread(move |inner| match inner.tree.kind(&key) {
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
        self.on_disk_thread(move |inner| inner.read(&key, &range, version.as_deref()))
            .await
    }

    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool> {
        let (key, marks) = (key.clone(), marks.clone());
        self.on_disk_thread(move |inner| inner.write(&key, &bytes, &marks, create))
            .await
    }

    async fn open(&self, key: &Key, shape: Shape, _: &Marks, _: Option<&str>) -> Result<String> {
        let key = key.clone();
        self.on_disk_thread(move |inner| inner.open(&key, shape).map(|()| String::new()))
            .await
    }

    async fn blocks(&self, key: &Key, _: &str) -> Result<Option<Vec<Block>>> {
        let key = key.clone();
        self.on_disk_thread(move |inner| inner.blocks(&key).map(Some))
            .await
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
        self.on_disk_thread(move |inner| {
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
        self.on_disk_thread(move |inner| inner.finish(&key, &marks))
            .await
    }

    async fn abandon(&self, key: &Key, _: &str) -> Result<()> {
        let key = key.clone();
        self.on_disk_thread(move |inner| {
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
        self.on_disk_thread(move |inner| {
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
        // A name inside each folder stands for the content that is gone: the folder is removed, and
        // every empty folder above it.
        let gone: Vec<Key> = marks
            .iter()
            .filter_map(|mark| Key::new(format!("{}/gone", mark.folder)).ok())
            .collect();
        self.on_disk_thread(move |inner| {
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
            .map_err(|()| Error::unsupported(format!("{} has no address", path.display())))
    }
}
