//! Watches for the end of a job's time. The scheduler's own warning signal is only a reason to ask
//! it, because it sends that signal too early to a job that it has started again.

use std::time::{Duration, Instant};

/// The shortest and the longest time between SIGTERM and the time limit.
const WARNING_LEAD_TIMES: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(60));
/// The shortest interval between two questions to the scheduler.
const MIN_QUERY_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Deadline {
    /// When the time is up; `None` if there is no limit, or none is known.
    end: Option<Instant>,
    lead: Duration,
    asked: Instant,
}

impl Deadline {
    pub(super) fn new(left: Option<Duration>) -> Self {
        let lead = left.map_or(WARNING_LEAD_TIMES.1, |left| {
            (left / 4).clamp(WARNING_LEAD_TIMES.0, WARNING_LEAD_TIMES.1)
        });
        let now = Instant::now();
        Self {
            end: left.map(|left| now + left),
            lead,
            asked: now,
        }
    }

    /// Whether the ranks must be ended now, so that their grace fits before the limit.
    pub(super) fn is_near(
        &mut self,
        is_warned: bool,
        time_left: impl Fn() -> Option<Duration>,
    ) -> bool {
        let near = |end: Option<Instant>, lead: Duration| {
            end.is_some_and(|end| end.saturating_duration_since(Instant::now()) <= lead)
        };
        if !is_warned && !near(self.end, self.lead) {
            return false;
        }
        if is_warned || self.asked.elapsed() >= MIN_QUERY_INTERVAL {
            self.asked = Instant::now();
            // A scheduler that does not answer has not extended the time.
            if let Some(left) = time_left() {
                self.end = Some(Instant::now() + left);
            }
        }
        near(self.end, self.lead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_near_when_the_grace_would_not_fit_after_it() {
        let never = || -> Option<Duration> { panic!("nobody is asked") };
        let mut far = Deadline::new(Some(Duration::from_secs(3_600)));
        assert!(!far.is_near(false, never));
        let mut near = Deadline::new(Some(Duration::from_secs(1)));
        assert!(near.is_near(false, never));
        let mut endless = Deadline::new(None);
        assert!(!endless.is_near(false, never));
        // A warning is a reason to ask, and the answer counts.
        assert!(!far.is_near(true, || Some(Duration::from_secs(3_600))));
        assert!(far.is_near(true, || Some(Duration::from_secs(1))));
    }
}
