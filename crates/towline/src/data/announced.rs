//! Says in the state folder how far a transfer is, for the page and every other watcher.

use crate::output::bar;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use towline_core::time::Moment;
use towline_host::{clock, filesystem, lock};
use towline_io::transfer::progress::Progress;
use towline_wire::layout::StateFolder;
use towline_wire::report::transfer::Direction;
use towline_wire::transfer::{STATUS_SUFFIX, TransferStatus, written};

/// A transfer that takes less time is not worth a file.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(400);
const WRITE_INTERVAL: Duration = Duration::from_millis(250);

/// A transfer, as it is told to others.
pub(crate) struct Announced<'a> {
    pub(crate) state: &'a StateFolder,
    pub(crate) path: &'a str,
    pub(crate) direction: Direction,
    pub(crate) progress: Arc<Progress>,
}

impl Announced<'_> {
    /// Does `act`, and tells meanwhile how far it is. A disk that is full keeps nobody from moving
    /// data: then nothing is told.
    pub(crate) async fn during<T>(self, act: impl Future<Output = T>) -> T {
        let began = clock::now();
        let telling = async {
            tokio::time::sleep(ANNOUNCED_AFTER).await;
            let Ok(file) = StatusFile::make(self.state) else {
                return std::future::pending().await;
            };
            let mut tick = tokio::time::interval(WRITE_INTERVAL);
            loop {
                tick.tick().await;
                file.write(&self.status(began));
            }
        };
        tokio::select! {
            result = act => result,
            () = telling => unreachable!("it tells until the transfer is over"),
        }
    }

    fn status(&self, began: Moment) -> TransferStatus {
        TransferStatus {
            path: self.path.to_owned(),
            direction: self.direction,
            began,
            progress: bar::reported(self.path, &self.progress.glance()),
        }
    }
}

/// The file of a transfer. It is locked while the transfer lasts, and removed at its end.
struct StatusFile {
    file: File,
    path: PathBuf,
}

impl StatusFile {
    fn make(state: &StateFolder) -> io::Result<Self> {
        filesystem::private_folder(&state.transfers())?;
        remove_old(&state.transfers());
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(io::Error::other)?;
        let path = state.transfer_status(&format!("{:016x}", u64::from_le_bytes(id)));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let made = Self { file, path };
        if lock::try_lock_with_retries(&made.file)? {
            Ok(made)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    fn write(&self, status: &TransferStatus) {
        // Watchers see the older numbers until there is room.
        let _ = self.file.write_all_at(&written(status), 0);
    }
}

impl Drop for StatusFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the files of processes that were killed.
fn remove_old(folder: &Path) {
    for entry in filesystem::entries(folder).unwrap_or_default() {
        let name = entry.file_name();
        let is_status = name
            .to_str()
            .is_some_and(|name| name.ends_with(STATUS_SUFFIX));
        let is_old = entry.metadata().is_ok_and(|metadata| {
            let age = metadata.modified().ok().and_then(clock::age);
            age.is_some_and(|age| age > ABANDONED_AFTER)
        });
        if is_status && is_old && !lock::is_held(&entry.path()).unwrap_or(true) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file that nobody has written for so long, and nobody holds, is of a process that was killed.
/// One that was just made is not locked yet.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);
