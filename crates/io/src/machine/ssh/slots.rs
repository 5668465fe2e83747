//! How many sessions of one master we use at once. A server takes ten by default, and what other
//! programs open over the same master counts too.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Sessions of one master that are open at once.
const MAX_SESSIONS: usize = 8;
/// Long sessions that are open at once; the rest of the slots is for short ones.
const MAX_LONG_SESSIONS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
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

/// Room for one session, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    stay: Stay,
}

impl Slots {
    /// `None` when none is free until the deadline.
    pub(super) fn take(self: &Arc<Self>, stay: Stay, deadline: Instant) -> Option<Slot> {
        let is_full = |used: &mut Used| {
            used.all >= MAX_SESSIONS || (stay == Stay::Long && used.long >= MAX_LONG_SESSIONS)
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
        used.long += usize::from(stay == Stay::Long);
        Some(Slot {
            slots: self.clone(),
            stay,
        })
    }

    /// Waits until one of ours ends, or for this long: others may have all that the server gives.
    pub(super) fn pause(&self, pause: Duration) {
        let used = self.used.lock().expect("no panic while held");
        drop(self.freed.wait_timeout(used, pause));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.slots.used.lock().expect("no panic while held");
        used.all -= 1;
        used.long -= usize::from(self.stay == Stay::Long);
        drop(used);
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sessions_leave_room() {
        let slots = Arc::<Slots>::default();
        let at_once = Instant::now();
        let long: Vec<_> = std::iter::from_fn(|| slots.take(Stay::Long, at_once))
            .take(MAX_SESSIONS)
            .collect();
        assert_eq!(long.len(), MAX_LONG_SESSIONS);
        let short: Vec<_> = std::iter::from_fn(|| slots.take(Stay::Short, at_once))
            .take(MAX_SESSIONS)
            .collect();
        assert_eq!(short.len(), MAX_SESSIONS - MAX_LONG_SESSIONS);
        drop(long);
        assert!(slots.take(Stay::Long, at_once).is_some());
    }
}
