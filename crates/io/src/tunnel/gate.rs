//! Whether the way is open. Who comes while it is not waits a little for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    heard: Mutex<Option<Instant>>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, bool> {
        self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, is_open: bool) {
        *self.state() = is_open;
        self.changed.notify_all();
    }

    /// Whether it is open, at the latest after `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.state(), timeout, |is_open| !*is_open);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The far end has said something.
    pub(super) fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When it last did.
    pub(super) fn heard(&self) -> Option<Instant> {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_let_in_when_it_opens_and_no_later_than_promised() {
        let gate = Gate::default();
        assert!(!gate.wait(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait(Duration::from_secs(60)));
            gate.set(true);
            assert!(waiting.join().expect("no panic"));
        });
    }
}
