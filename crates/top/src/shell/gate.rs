//! Holds the stream back while what it sent is not taken in. A log may grow faster than it can be
//! shown, and what waits must not fill the memory.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The bytes that may wait.
const MAX_WAITING_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Arc<(Mutex<Waiting>, Condvar)>);

#[derive(Debug, Default)]
struct Waiting {
    bytes: usize,
    is_open: bool,
}

impl Gate {
    /// Waits until there is room, then counts these bytes.
    pub(super) fn pass(&self, bytes: usize) {
        let (waiting, changed) = &*self.0;
        let guard = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |waiting: &mut Waiting| !waiting.is_open && waiting.bytes > MAX_WAITING_BYTES;
        let passed = changed.wait_while(guard, is_full);
        passed.unwrap_or_else(PoisonError::into_inner).bytes += bytes;
    }

    pub(super) fn release(&self, bytes: usize) {
        let (waiting, changed) = &*self.0;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        drop(waiting);
        changed.notify_all();
    }

    /// Lets everything pass from now on.
    pub(super) fn open(&self) {
        let (waiting, changed) = &*self.0;
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_open = true;
        changed.notify_all();
    }
}
