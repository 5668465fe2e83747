//! How long until the next try: soon at first, then ever later.

use std::time::Duration;

/// Pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause after failures that may pass by themselves.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause after failures that do not pass by themselves, because a host must not take us
/// for an attacker.
const MAX_LASTING_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Backoff {
    tries: u32,
}

impl Backoff {
    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }

    /// The next pause, with some chance in it: machines that lose one bastion together do not come
    /// back together.
    pub(super) fn next(&mut self, is_lasting: bool) -> Duration {
        let longest = if is_lasting {
            MAX_LASTING_PAUSE
        } else {
            MAX_PAUSE
        };
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.tries.min(10))
            .min(longest);
        self.tries += 1;
        let mut byte = [128];
        let _ = getrandom::fill(&mut byte);
        pause.mul_f64(0.8 + f64::from(byte[0]) / 255.0 * 0.4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_growing() {
        let mut backoff = Backoff::default();
        let mut expected = 500;
        for _ in 0..20 {
            let pause = backoff.next(false).as_millis();
            assert!(
                (expected * 8 / 10..=expected * 12 / 10 + 1).contains(&pause),
                "{pause} for {expected}"
            );
            expected = (expected * 2).min(5000);
        }
        assert!(backoff.next(true) > Duration::from_secs(40));
        backoff.reset();
        assert!(backoff.next(true) < Duration::from_secs(1));
    }
}
