//! Snapshots in a datastore.

use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;
use towline_core::{Error, Result};
use towline_io::data::{Data, Key, Marks};
use towline_snapshot::digest::Digest;
use towline_snapshot::problem::{Problem, Result as SnapshotResult};
use towline_snapshot::store::{Blob, BlobKind, BlobStore, Stored};
use towline_wire::layout::StateFolder;

/// A datastore as a place for snapshots.
pub struct RemoteStore {
    data: Arc<dyn Data>,
    prefix: String,
    runtime: &'static Runtime,
}

impl std::fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteStore({}, {})", self.data.place(), self.prefix)
    }
}

impl RemoteStore {
    /// Below `prefix`. Requests are made on `runtime`, which waits for their answers.
    pub fn new(data: Arc<dyn Data>, prefix: String, runtime: &'static Runtime) -> Result<Self> {
        Key::new(prefix.clone())
            .map_err(|why| Error::usage(format!("nothing can be stored there: {why}")))?;
        Ok(Self {
            data,
            prefix,
            runtime,
        })
    }

    /// The file of this store's index.
    pub fn index(&self, state: &StateFolder) -> PathBuf {
        state.store_index(
            &Digest::of(format!("{}\n{}", self.data.place(), self.prefix).as_bytes()).short(),
        )
    }

    fn key(&self, blob: &Blob) -> SnapshotResult<Key> {
        Key::new(format!("{}/{}", self.prefix, blob.path())).map_err(Problem::hostile)
    }

    fn wait<T>(&self, act: impl Future<Output = Result<T>>) -> SnapshotResult<T> {
        self.runtime
            .block_on(act)
            .map_err(|error| Problem::Store(Box::new(error)))
    }
}

impl BlobStore for RemoteStore {
    fn place(&self) -> String {
        self.data.place()
    }

    fn has(&self, blob: &Blob) -> SnapshotResult<bool> {
        let key = self.key(blob)?;
        self.wait(self.data.head(&key)).map(|found| found.is_some())
    }

    fn put(&self, blob: &Blob, bytes: &[u8]) -> SnapshotResult<()> {
        let key = self.key(blob)?;
        let bytes = Bytes::copy_from_slice(bytes);
        let begun = std::time::Instant::now();
        loop {
            let written = self.runtime.block_on(self.data.write(
                &key,
                bytes.clone(),
                &Marks::default(),
                true,
            ));
            match written {
                Ok(_) => return Ok(()),
                // Another process has written the same bytes.
                Err(_) if self.has(blob)? => return Ok(()),
                Err(error)
                    if error.retry_advice() == towline_core::Retry::Later
                        && begun.elapsed().as_secs() < 60 =>
                {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                Err(error) => return Err(Problem::Store(Box::new(error))),
            }
        }
    }

    fn get(&self, blob: &Blob) -> SnapshotResult<Option<Vec<u8>>> {
        let key = self.key(blob)?;
        let Some(object) = self.wait(self.data.head(&key))? else {
            return Ok(None);
        };
        let bytes = self.wait(
            self.data
                .read(&key, 0..object.size, object.version.as_deref()),
        )?;
        Ok(Some(bytes.to_vec()))
    }

    fn get_range(&self, blob: &Blob, offset: u64, length: usize) -> SnapshotResult<Vec<u8>> {
        let key = self.key(blob)?;
        let range = offset..offset.saturating_add(length as u64);
        match self.runtime.block_on(self.data.read(&key, range, None)) {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(error) if error.kind() == towline_core::ErrorKind::NotFound => match blob {
                Blob::Pack(pack) => Err(Problem::NoPack(*pack)),
                _ => Err(Problem::Store(Box::new(error))),
            },
            Err(error) => Err(Problem::Store(Box::new(error))),
        }
    }

    fn list(&self, kind: BlobKind) -> SnapshotResult<Vec<Stored>> {
        let prefix = format!("{}/{}/", self.prefix, kind.folder());
        let (mut stored, mut next) = (Vec::new(), None);
        loop {
            let page = self.wait(self.data.list(&prefix, true, next.as_deref()))?;
            for object in page.objects {
                let below = object
                    .key
                    .as_str()
                    .strip_prefix(&self.prefix)
                    .map(|rest| rest.trim_start_matches('/'));
                let blob = below.and_then(Blob::parse);
                stored.extend(blob.map(|blob| Stored {
                    blob,
                    size: object.size,
                    changed: object.changed,
                }));
            }
            next = page.next;
            if next.is_none() {
                stored.sort_by_key(|stored| stored.blob);
                return Ok(stored);
            }
        }
    }

    fn delete(&self, blobs: &[Blob]) -> SnapshotResult<()> {
        let keys = blobs
            .iter()
            .map(|blob| self.key(blob))
            .collect::<SnapshotResult<Vec<_>>>()?;
        self.wait(self.data.delete(&keys))
    }

    fn parallel(&self) -> usize {
        6
    }
}
