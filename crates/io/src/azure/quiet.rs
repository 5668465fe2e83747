//! Services that asked to be left alone for longer than a caller waits. Until then nothing is sent
//! to them: whoever asks before that time is refused again, and may have to wait the longer for it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use towline_core::time::human_millis;
use towline_core::{Error, Result};

/// The longest pause that a service can impose.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// By host, reading and writing apart: services count them apart.
#[derive(Debug, Default)]
pub(super) struct Quiet(Mutex<HashMap<(String, bool), Instant>>);

impl Quiet {
    pub(super) fn asked_for(&self, host: &str, writes: bool, wish: Duration) {
        let until = Instant::now() + wish.min(MAX_PAUSE);
        let mut all = self.0.lock().expect("no panic while held");
        let known = all.entry((host.to_owned(), writes)).or_insert(until);
        *known = until.max(*known);
    }

    /// How long to wait before something is sent; an error where that is longer than `retry`.
    pub(super) fn before(
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
            Error::unreachable(format!("{at}: {host} asked for patience, for {shown} more"))
                .hint("it is asked again then; nothing is lost"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::ErrorKind;

    #[test]
    fn a_wish_holds_for_its_host_and_its_kind_of_call() {
        let (quiet, minute) = (Quiet::default(), Duration::from_secs(60));
        assert_eq!(
            quiet.before("a", "host", true, minute).ok(),
            Some(Duration::ZERO)
        );
        quiet.asked_for("host", true, Duration::from_secs(900));
        quiet.asked_for("host", true, Duration::from_secs(5));
        let error = quiet
            .before("aml", "host", true, minute)
            .expect_err("it asked for more");
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(
            error
                .to_string()
                .starts_with("aml: host asked for patience, for 1"),
            "{error}"
        );
        assert_eq!(
            quiet.before("a", "host", false, minute).ok(),
            Some(Duration::ZERO)
        );
        assert_eq!(
            quiet.before("a", "other", true, minute).ok(),
            Some(Duration::ZERO)
        );
        quiet.asked_for("soon", false, Duration::from_secs(30));
        assert!(
            quiet
                .before("a", "soon", false, minute)
                .is_ok_and(|left| left > Duration::from_secs(25))
        );
        quiet.asked_for("mad", false, Duration::from_secs(u64::MAX));
        assert!(quiet.before("a", "mad", false, MAX_PAUSE).is_ok());
    }
}
