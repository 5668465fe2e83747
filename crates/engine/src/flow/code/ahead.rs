//! Sends code to a far cluster while it is still being packed here. An error does no harm: the
//! daemon sends the missing packs with the submission.

use crate::flow::outside::ClusterOpener;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use towline_core::cluster::Cluster;
use towline_core::{Error, Result};
use towline_snapshot::digest::Digest;
use towline_snapshot::problem::Result as SnapshotResult;
use towline_snapshot::store::{Blob, BlobKind, BlobStore, FolderStore, Stored};

/// The local store; new packs are sent to a cluster too.
pub(super) struct Ahead<'s> {
    store: &'s FolderStore,
    sender: Mutex<Sending>,
}

enum Sending {
    /// There was no new pack so far, so there is no connection.
    Not(Option<ClusterOpener>),
    Begun(Sender<Blob>, JoinHandle<()>, OpenedCluster),
}

/// The connection to the cluster, once it is open.
type OpenedCluster = Arc<OnceLock<Arc<dyn Cluster>>>;

/// How long to wait for a connection in trouble, and how often to check.
const TROUBLE_TIMEOUT: Duration = Duration::from_secs(5);
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

impl<'s> Ahead<'s> {
    /// `start` opens a connection of our own to the cluster.
    pub(super) fn new(store: &'s FolderStore, start: ClusterOpener) -> Self {
        Self {
            store,
            sender: Mutex::new(Sending::Not(Some(start))),
        }
    }

    /// Waits until all packs are sent, or one failed, or the connection is in trouble for too long.
    pub(super) fn finish(self) {
        let Sending::Begun(sender, thread, opened) = self
            .sender
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        else {
            return;
        };
        drop(sender);
        let mut troubled: Option<Instant> = None;
        while !thread.is_finished() {
            if opened.get().is_none_or(|opened| opened.trouble().is_none()) {
                troubled = None;
            } else if troubled.get_or_insert_with(Instant::now).elapsed() > TROUBLE_TIMEOUT {
                return;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        let _ = thread.join();
    }

    fn send(&self, blob: Blob) {
        let mut sending = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if let Sending::Not(start) = &mut *sending
            && let Some(start) = start.take()
        {
            let (sender, blobs) = channel();
            let folder = self.store.root().to_owned();
            let opened = OpenedCluster::default();
            let found = opened.clone();
            let thread = std::thread::Builder::new().spawn(move || {
                let _ = carry(start, folder, &blobs, &found);
            });
            if let Ok(thread) = thread {
                *sending = Sending::Begun(sender, thread, opened);
            }
        }
        if let Sending::Begun(sender, ..) = &*sending {
            let _ = sender.send(blob);
        }
    }
}

fn carry(
    start: ClusterOpener,
    folder: PathBuf,
    blobs: &Receiver<Blob>,
    opened: &OnceLock<Arc<dyn Cluster>>,
) -> Result<()> {
    let made = start()?;
    let backend = opened.get_or_init(|| made);
    let store = FolderStore::new(folder);
    let gone = || Error::bug("a pack that was just made is gone");
    backend.put(
        &mut blobs
            .iter()
            .map(|blob| Ok((blob.path(), store.get(&blob)?.ok_or_else(gone)?))),
    )
}

impl BlobStore for Ahead<'_> {
    fn place(&self) -> String {
        self.store.place()
    }
    fn has(&self, blob: &Blob) -> SnapshotResult<bool> {
        self.store.has(blob)
    }
    fn put(&self, blob: &Blob, bytes: &[u8]) -> SnapshotResult<()> {
        self.store.put(blob, bytes)?;
        // A root says that all its packs are there, so the daemon sends it last.
        if matches!(blob, Blob::Pack(_)) {
            self.send(*blob);
        }
        Ok(())
    }
    fn get(&self, blob: &Blob) -> SnapshotResult<Option<Vec<u8>>> {
        self.store.get(blob)
    }
    fn get_range(&self, blob: &Blob, offset: u64, length: usize) -> SnapshotResult<Vec<u8>> {
        self.store.get_range(blob, offset, length)
    }
    fn list(&self, kind: BlobKind) -> SnapshotResult<Vec<Stored>> {
        self.store.list(kind)
    }
    fn missing(&self, packs: &[Digest]) -> SnapshotResult<Vec<Digest>> {
        self.store.missing(packs)
    }
    fn delete(&self, blobs: &[Blob]) -> SnapshotResult<()> {
        self.store.delete(blobs)
    }
    fn parallel(&self) -> usize {
        self.store.parallel()
    }
    fn whole_files(&self) -> Option<PathBuf> {
        self.store.whole_files()
    }
}
