//! Tells threads that it is over, also those that wait.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub(super) struct Closing(Arc<(Mutex<bool>, Condvar)>);

impl Closing {
    pub(super) fn close(&self) {
        let (is_closed, changed) = &*self.0;
        *is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Waits so long at most. Whether it is over.
    pub(super) fn wait(&self, most: Duration) -> bool {
        let (is_closed, changed) = &*self.0;
        let guard = is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, most, |is_closed| !*is_closed);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *guard
    }
}
