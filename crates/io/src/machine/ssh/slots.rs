//! Limits how many sessions of one master we use at once. A server takes ten by default, and the
//! sessions of other programs over the same master count too.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Sessions of one master that are open at once.
const MAX_SESSIONS: usize = 8;
/// Long sessions that are open at once; the rest of the slots is for short ones.
const MAX_LONG_SESSIONS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionLength {
    Short,
    Long,
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Used {
    all: usize,
    long: usize,
}

/// The right to one session, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    length: SessionLength,
}

impl Slots {
    /// Waits for a free slot; `None` if there is none by the deadline.
    pub(super) fn acquire(
        self: &Arc<Self>,
        length: SessionLength,
        deadline: Instant,
    ) -> Option<Slot> {
        let is_full = |used: &mut Used| {
            used.all >= MAX_SESSIONS
                || (length == SessionLength::Long && used.long >= MAX_LONG_SESSIONS)
        };
        let used = self.used.lock().expect("no panic while held");
        let timeout = deadline.saturating_duration_since(Instant::now());
        let (mut used, waited) = self
            .freed
            .wait_timeout_while(used, timeout, is_full)
            .expect("no panic while held");
        if waited.timed_out() {
            return None;
        }
        used.all += 1;
        used.long += usize::from(length == SessionLength::Long);
        Some(Slot {
            slots: self.clone(),
            length,
        })
    }

    /// Waits until one of our sessions ends, or for this long: other programs may use all that the
    /// server gives.
    pub(super) fn wait_for_free(&self, longest: Duration) {
        let used = self.used.lock().expect("no panic while held");
        drop(self.freed.wait_timeout(used, longest));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.slots.used.lock().expect("no panic while held");
        used.all -= 1;
        used.long -= usize::from(self.length == SessionLength::Long);
        drop(used);
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sessions_leave_slots_free() {
        let slots = Arc::<Slots>::default();
        let at_once = Instant::now();
        let long: Vec<_> = std::iter::from_fn(|| slots.acquire(SessionLength::Long, at_once))
            .take(MAX_SESSIONS)
            .collect();
        assert_eq!(long.len(), MAX_LONG_SESSIONS);
        let short: Vec<_> = std::iter::from_fn(|| slots.acquire(SessionLength::Short, at_once))
            .take(MAX_SESSIONS)
            .collect();
        assert_eq!(short.len(), MAX_SESSIONS - MAX_LONG_SESSIONS);
        drop(long);
        assert!(slots.acquire(SessionLength::Long, at_once).is_some());
    }
}
