//! Pauses between two tries of a tunnel.

use crate::random;
use std::time::Duration;
use towline_host::backoff::{self, Backoff};

/// Pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause after failures that may pass by themselves.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause after failures that do not pass by themselves, because a host must not take us
/// for an attacker.
const MAX_LASTING_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct TunnelBackoff(Backoff);

impl Default for TunnelBackoff {
    fn default() -> Self {
        Self(Backoff::new(FIRST_PAUSE, MAX_PAUSE))
    }
}

impl TunnelBackoff {
    pub(super) fn reset(&mut self) {
        self.0.reset();
    }

    /// The next pause. It is random within a fifth, so that machines that lose one bastion together
    /// do not come back together.
    pub(super) fn pause(&mut self, is_lasting: bool) -> Duration {
        let pause = if is_lasting {
            self.0.pause_up_to(MAX_LASTING_PAUSE)
        } else {
            self.0.pause()
        };
        backoff::spread(pause, &(0.8..=1.2), random::fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_growing() {
        let mut backoff = TunnelBackoff::default();
        let mut expected = 500;
        for _ in 0..20 {
            let pause = backoff.pause(false).as_millis();
            assert!(
                (expected * 8 / 10..=expected * 12 / 10 + 1).contains(&pause),
                "{pause} for {expected}"
            );
            expected = (expected * 2).min(5000);
        }
        assert!(backoff.pause(true) > Duration::from_secs(40));
        backoff.reset();
        assert!(backoff.pause(true) < Duration::from_secs(1));
    }
}
