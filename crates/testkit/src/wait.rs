//! Waiting on conditions, never on time alone.

use std::time::{Duration, Instant};
use towline_host::backoff::Backoff;

/// Calls `condition` until it returns a value; fails the test with `what` after a minute.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(50));
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "waited a minute for {what}"
        );
        std::thread::sleep(backoff.pause());
    }
}

/// As [`until`], for conditions that may take longer than a minute.
#[track_caller]
pub fn until_within<T>(seconds: u64, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(seconds),
            "waited {seconds} s for {what}"
        );
        std::thread::park_timeout(Duration::from_millis(100));
    }
}
