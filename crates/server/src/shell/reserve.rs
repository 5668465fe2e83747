//! Disk space in reserve: a file that is removed when the disk is full. Then the ends of runs can
//! still be written, and the runs whose logs fill the disk can be pruned.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use towline_host::filesystem;

/// Enough to move the history's write-ahead log into the database, which frees the log's own space.
const RESERVE_BYTES: u64 = towline_engine::history::WRITE_AHEAD_LOG_BYTES as u64;

pub(super) struct Reserve {
    path: PathBuf,
    held: bool,
}

impl Reserve {
    pub(super) fn new(path: PathBuf) -> Self {
        let held = fs::metadata(&path).is_ok_and(|meta| meta.len() >= RESERVE_BYTES);
        Self { path, held }
    }

    pub(super) const fn is_held(&self) -> bool {
        self.held
    }

    /// Makes the reserve, unless the disk is nearly full already. Returns whether there is one.
    pub(super) fn keep(&mut self) -> bool {
        let folder = self.path.parent().unwrap_or(&self.path);
        let is_roomy = || {
            filesystem::room(folder)
                .is_ok_and(|room| !room.is_full() && room.free_bytes > 2 * RESERVE_BYTES)
        };
        if self.held || !is_roomy() {
            return self.held;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path);
        let flags = rustix::fs::FallocateFlags::empty();
        self.held =
            file.is_ok_and(|file| rustix::fs::fallocate(&file, flags, 0, RESERVE_BYTES).is_ok());
        self.held
    }

    /// Removes the reserve.
    pub(super) fn release(&mut self) {
        self.held = false;
        let _ = fs::remove_file(&self.path);
    }
}
