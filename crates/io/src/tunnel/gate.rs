//! Whether the route is up. A connection that comes while it is down waits a little.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    last_data: Mutex<Option<Instant>>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, bool> {
        self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, is_open: bool) {
        *self.state() = is_open;
        self.changed.notify_all();
    }

    /// Waits until it is open, up to `timeout`; whether it is.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.state(), timeout, |is_open| !*is_open);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The far end has sent something.
    pub(super) fn note_data(&self) {
        *self
            .last_data
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When the far end last sent something.
    pub(super) fn last_data(&self) -> Option<Instant> {
        *self
            .last_data
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_returns_when_the_gate_opens_or_its_time_is_over() {
        let gate = Gate::default();
        assert!(!gate.wait(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait(Duration::from_secs(60)));
            gate.set(true);
            assert!(waiting.join().expect("no panic"));
        });
    }
}
