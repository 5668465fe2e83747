//! How the runs stand that somebody waits for: one line on a terminal's stderr, drawn over and over.

use crate::context::Context;
use crate::output;
use crate::output::columns;
use std::time::{Duration, Instant};
use towline_core::counts::PhaseCounts;
use towline_core::state::Phase;
use towline_core::time::human_millis;

/// A shorter wait shows nothing.
const SHOWN_AFTER: Duration = Duration::from_millis(400);
/// The line changes at most so often, because a sweep can have many events at once.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// The elapsed time is brought up to date so often.
const TICK: Duration = Duration::from_secs(1);

pub(super) struct Progress {
    counts: PhaseCounts,
    begun: Instant,
    drawn: Option<Instant>,
    has_changed: bool,
}

impl Progress {
    /// `None` if there is nobody to see it.
    pub(super) fn new(context: &Context) -> Option<Self> {
        if context.json || output::drawing_width().is_none() {
            return None;
        }
        Some(Self {
            counts: PhaseCounts::default(),
            begun: Instant::now(),
            drawn: None,
            has_changed: false,
        })
    }

    /// Counts a run in its new phase.
    pub(super) fn note(&mut self, before: Option<Phase>, phase: Phase) {
        if let Some(before) = before {
            self.counts.remove(before, 1);
        }
        self.counts.add(phase, 1);
        self.has_changed = true;
    }

    /// Draws the line if it is due. Returns when it is due next.
    pub(super) fn draw(&mut self, now: Instant) -> Instant {
        let pause = if self.has_changed {
            REDRAW_INTERVAL
        } else {
            TICK
        };
        let due = self
            .drawn
            .map_or(self.begun + SHOWN_AFTER, |drawn| drawn + pause);
        if now < due {
            return due;
        }
        let elapsed = now.duration_since(self.begun).as_millis();
        let line = line(&self.counts, u64::try_from(elapsed).unwrap_or(u64::MAX));
        // A line that is wrapped could not be drawn over.
        let width = output::drawing_width().map_or(0, |width| width.saturating_sub(1));
        output::redraw(&columns::cut(&line, width));
        self.drawn = Some(now);
        self.has_changed = false;
        now + TICK
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            output::redraw("");
        }
    }
}

/// `waiting: 3 running, 5 queued; 1m20s`
fn line(counts: &PhaseCounts, elapsed_millis: u64) -> String {
    format!("waiting: {counts}; {}", human_millis(elapsed_millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::reason::Outcome;

    #[test]
    fn a_run_is_counted_once_however_often_it_changes() {
        let mut progress = Progress {
            counts: PhaseCounts::default(),
            begun: Instant::now(),
            drawn: None,
            has_changed: false,
        };
        for (before, phase) in [
            (None, Phase::Queued),
            (None, Phase::Queued),
            (Some(Phase::Queued), Phase::Running),
            (Some(Phase::Running), Phase::Ended(Outcome::Failed)),
        ] {
            progress.note(before, phase);
        }
        assert_eq!(
            line(&progress.counts, 80_000),
            "waiting: 1 failed, 1 queued; 1m20s"
        );
    }
}
