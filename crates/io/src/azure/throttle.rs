//! Services that asked for a longer pause than a caller waits. Nothing is sent to them before the
//! pause is over: an earlier call would be refused, and may prolong the pause.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use towline_core::time::human_millis;
use towline_core::{Error, Result};

/// The longest pause that a service can impose.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// The end of each pause, by host; reads and writes are apart, because services count them apart.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<HashMap<(String, bool), Instant>>);

impl Throttle {
    pub(super) fn note_pause(&self, host: &str, writes: bool, pause: Duration) {
        let until = Instant::now() + pause.min(MAX_PAUSE);
        let mut all = self.0.lock().expect("no panic while held");
        let known = all.entry((host.to_owned(), writes)).or_insert(until);
        *known = until.max(*known);
    }

    /// How long to wait before the next call; an error if that is longer than `retry`.
    pub(super) fn wait_before(
        &self,
        at: &str,
        host: &str,
        writes: bool,
        retry: Duration,
    ) -> Result<Duration> {
        let until = self
            .0
            .lock()
            .expect("no panic while held")
            .get(&(host.to_owned(), writes))
            .copied();
        let left = until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        });
        if left <= retry {
            return Ok(left);
        }
        let shown = human_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        Err(
            Error::unreachable(format!("{at}: {host} asked us to wait another {shown}"))
                .hint("it is asked again then; nothing is lost"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::ErrorKind;

    #[test]
    fn a_pause_holds_for_its_host_and_its_kind_of_call() {
        let (throttle, minute) = (Throttle::default(), Duration::from_secs(60));
        assert_eq!(
            throttle.wait_before("a", "host", true, minute).ok(),
            Some(Duration::ZERO)
        );
        throttle.note_pause("host", true, Duration::from_secs(900));
        throttle.note_pause("host", true, Duration::from_secs(5));
        let error = throttle
            .wait_before("aml", "host", true, minute)
            .expect_err("it asked for more");
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(
            error
                .to_string()
                .starts_with("aml: host asked us to wait another 1"),
            "{error}"
        );
        assert_eq!(
            throttle.wait_before("a", "host", false, minute).ok(),
            Some(Duration::ZERO)
        );
        assert_eq!(
            throttle.wait_before("a", "other", true, minute).ok(),
            Some(Duration::ZERO)
        );
        throttle.note_pause("soon", false, Duration::from_secs(30));
        assert!(
            throttle
                .wait_before("a", "soon", false, minute)
                .is_ok_and(|left| left > Duration::from_secs(25))
        );
        throttle.note_pause("mad", false, Duration::from_secs(u64::MAX));
        assert!(throttle.wait_before("a", "mad", false, MAX_PAUSE).is_ok());
    }
}
