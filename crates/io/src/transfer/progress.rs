//! How far a transfer is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Counters that a transfer updates and others read.
#[derive(Debug, Default)]
pub struct Progress {
    pub found: AtomicU64,
    pub found_bytes: AtomicU64,
    pub done: AtomicU64,
    pub done_bytes: AtomicU64,
    /// Whether everything has been found; before that the end cannot be estimated.
    pub all_found: AtomicBool,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    pub found: u64,
    pub found_bytes: u64,
    pub done: u64,
    pub done_bytes: u64,
    pub all_found: bool,
}

impl Progress {
    pub(crate) fn find(&self, bytes: u64) {
        self.found.fetch_add(1, Ordering::Relaxed);
        self.found_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    pub(crate) fn advance(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    pub(crate) fn finish(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
    pub fn glance(&self) -> Glance {
        Glance {
            found: self.found.load(Ordering::Relaxed),
            found_bytes: self.found_bytes.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            done_bytes: self.done_bytes.load(Ordering::Relaxed),
            all_found: self.all_found.load(Ordering::Relaxed),
        }
    }
}

impl Glance {
    /// Bytes per second since the start.
    pub fn rate(&self, elapsed: Duration) -> u64 {
        let millis = u64::try_from(elapsed.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        self.done_bytes.saturating_mul(1000) / millis
    }
    /// The time that is left at this rate; `None` until everything is found.
    pub fn left(&self, elapsed: Duration) -> Option<Duration> {
        let rate = self.rate(elapsed);
        (self.all_found && rate > 0)
            .then(|| Duration::from_secs(self.found_bytes.saturating_sub(self.done_bytes) / rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_estimated_only_when_all_is_found() {
        let progress = Progress::default();
        progress.find(1000);
        progress.advance(250);
        assert_eq!(progress.glance().rate(Duration::from_secs(1)), 250);
        assert_eq!(progress.glance().left(Duration::from_secs(1)), None);
        progress.all_found.store(true, Ordering::Relaxed);
        assert_eq!(
            progress.glance().left(Duration::from_secs(1)),
            Some(Duration::from_secs(3))
        );
    }
}
