//! The end of a job's time, seen coming. The scheduler's own early signal is only a reason to look:
//! to a job that it has started again it sends it too soon.

use super::scheduler;
use std::time::{Duration, Instant};

/// The shortest and the longest notice that ranks have.
const WARNING_LEAD_TIMES: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(60));
/// The scheduler is not asked more often than this.
const MIN_QUERY_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Deadline {
    job: String,
    /// When the time is up; `None` where there is no limit, or none is known.
    end: Option<Instant>,
    lead: Duration,
    asked: Instant,
}

impl Deadline {
    pub(super) fn of(job: &str) -> Self {
        let left = scheduler::time_left(job);
        let lead = left.map_or(WARNING_LEAD_TIMES.1, |left| {
            (left / 4).clamp(WARNING_LEAD_TIMES.0, WARNING_LEAD_TIMES.1)
        });
        let now = Instant::now();
        Self {
            job: job.to_owned(),
            end: left.map(|left| now + left),
            lead,
            asked: now,
        }
    }

    /// Whether the ranks are to be ended now, so that there is time for it.
    pub(super) fn is_near(&mut self, signalled: bool) -> bool {
        let near = |end: Option<Instant>, lead: Duration| {
            end.is_some_and(|end| end.saturating_duration_since(Instant::now()) <= lead)
        };
        if !signalled && !near(self.end, self.lead) {
            return false;
        }
        if signalled || self.asked.elapsed() >= MIN_QUERY_INTERVAL {
            self.asked = Instant::now();
            // One that does not answer has not given us more time.
            if let Some(left) = scheduler::time_left(&self.job) {
                self.end = Some(Instant::now() + left);
            }
        }
        near(self.end, self.lead)
    }
}
