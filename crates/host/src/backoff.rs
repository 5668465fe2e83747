//! Growing pauses between tries.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The pause after each failure: twice as long as the one before, up to a limit. Only the caller
/// sleeps.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// Begins again with the first pause.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// The pause after one more failure.
    pub fn pause(&mut self) -> Duration {
        self.pause_up_to(self.longest)
    }

    /// The same with another limit for this one pause.
    pub fn pause_up_to(&mut self, longest: Duration) -> Duration {
        let pause = self.first.saturating_mul(1 << self.failures.min(31));
        self.failures = self.failures.saturating_add(1);
        pause.min(longest)
    }
}

/// A share of `pause`, so that many machines do not come back at the same moment. `random` lies
/// between 0 and 1.
pub fn spread(pause: Duration, share: &RangeInclusive<f64>, random: f64) -> Duration {
    let (low, high) = (share.start(), share.end());
    pause.mul_f64(low + random.clamp(0.0, 1.0) * (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit_and_begin_again() {
        let millis = Duration::from_millis;
        let mut backoff = Backoff::new(millis(100), millis(1000));
        let pauses: Vec<u128> = (0..6).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(backoff.pause_up_to(Duration::MAX), millis(6400));
        for _ in 0..100 {
            assert!(backoff.pause() == millis(1000));
        }
        backoff.reset();
        assert_eq!(backoff.pause(), millis(100));
    }

    #[test]
    fn a_share_of_the_pause_is_within_its_bounds() {
        let second = Duration::from_secs(1);
        assert_eq!(spread(second, &(0.5..=1.0), 0.0), second / 2);
        assert_eq!(spread(second, &(0.5..=1.0), 1.0), second);
        assert_eq!(spread(second, &(0.5..=1.0), 7.0), second);
    }
}
