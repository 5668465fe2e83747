//! How far an operation is.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
    files_expected: AtomicU64,
    bytes_expected: AtomicU64,
}

/// Numbers that are done, each with the expected number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    pub files: (u64, u64),
    pub bytes: (u64, u64),
}

impl Progress {
    pub(crate) fn expect(&self, files: u64, bytes: u64) {
        self.files_expected.fetch_add(files, Ordering::Relaxed);
        self.bytes_expected.fetch_add(bytes, Ordering::Relaxed);
    }
    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    /// Sets the numbers that another process reports.
    pub fn show(&self, reading: Reading) {
        let store = |number: &AtomicU64, value| number.store(value, Ordering::Relaxed);
        store(&self.files, reading.files.0);
        store(&self.files_expected, reading.files.1);
        store(&self.bytes, reading.bytes.0);
        store(&self.bytes_expected, reading.bytes.1);
    }
    pub fn read(&self) -> Reading {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Reading {
            files: (load(&self.files), load(&self.files_expected)),
            bytes: (load(&self.bytes), load(&self.bytes_expected)),
        }
    }
}
