//! How many runs are in which phase.

use crate::reason::Outcome;
use crate::state::Phase;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt;

/// Phases in the order of interest: failures first, then what is still to come.
pub const BY_INTEREST: [Phase; 9] = [
    Phase::Ended(Outcome::Failed),
    Phase::Ended(Outcome::Lost),
    Phase::Running,
    Phase::Queued,
    Phase::Submitting,
    Phase::Staging,
    Phase::Drafted,
    Phase::Ended(Outcome::Cancelled),
    Phase::Ended(Outcome::Succeeded),
];

/// The number of runs in each phase. Printed as `3 failed, 12 running`; in JSON a phase without a
/// run is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(with = "std::collections::BTreeMap<String, u64>")]
pub struct PhaseCounts([u64; BY_INTEREST.len()]);

impl PhaseCounts {
    /// The place of a phase in [`BY_INTEREST`].
    const fn place(phase: Phase) -> usize {
        match phase {
            Phase::Ended(Outcome::Failed) => 0,
            Phase::Ended(Outcome::Lost) => 1,
            Phase::Running => 2,
            Phase::Queued => 3,
            Phase::Submitting => 4,
            Phase::Staging => 5,
            Phase::Drafted => 6,
            Phase::Ended(Outcome::Cancelled) => 7,
            Phase::Ended(Outcome::Succeeded) => 8,
        }
    }

    pub fn of(&self, phase: Phase) -> u64 {
        self.0[Self::place(phase)]
    }

    pub fn add(&mut self, phase: Phase, runs: u64) {
        self.0[Self::place(phase)] += runs;
    }

    pub fn remove(&mut self, phase: Phase, runs: u64) {
        let count = &mut self.0[Self::place(phase)];
        *count = count.saturating_sub(runs);
    }

    /// Phases with at least one run, the most interesting first.
    pub fn present(&self) -> impl Iterator<Item = (Phase, u64)> + '_ {
        let pairs = BY_INTEREST.into_iter().zip(self.0);
        pairs.filter(|(_, count)| *count > 0)
    }

    /// The most interesting phase that a run is in.
    pub fn worst(&self) -> Option<Phase> {
        self.present().next().map(|(phase, _)| phase)
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The number of runs that have not ended.
    pub fn active(&self) -> u64 {
        let active = self.present().filter(|(phase, _)| !phase.is_ended());
        active.map(|(_, count)| count).sum()
    }
}

impl FromIterator<Phase> for PhaseCounts {
    fn from_iter<I: IntoIterator<Item = Phase>>(phases: I) -> Self {
        let mut counts = Self::default();
        phases.into_iter().for_each(|phase| counts.add(phase, 1));
        counts
    }
}

impl fmt::Display for PhaseCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (phase, count)) in self.present().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}{count} {}", phase.word())?;
        }
        Ok(())
    }
}

impl Serialize for PhaseCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (phase, count) in self.present() {
            map.serialize_entry(phase.word(), &count)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_place() {
        let counts: PhaseCounts = Phase::ALL.into_iter().collect();
        assert!(Phase::ALL.into_iter().all(|phase| counts.of(phase) == 1));
        let places: Vec<usize> = BY_INTEREST.into_iter().map(PhaseCounts::place).collect();
        assert!(places.into_iter().eq(0..BY_INTEREST.len()));
        assert_eq!((counts.total(), counts.active()), (9, 5));
    }

    #[test]
    fn failures_are_named_first_and_empty_phases_never() {
        let mut counts = PhaseCounts::default();
        assert_eq!((counts.to_string(), counts.worst()), (String::new(), None));
        counts.add(Phase::Ended(Outcome::Succeeded), 12);
        counts.add(Phase::Running, 2);
        counts.add(Phase::Ended(Outcome::Failed), 3);
        assert_eq!(counts.to_string(), "3 failed, 2 running, 12 succeeded");
        assert_eq!(counts.worst(), Some(Phase::Ended(Outcome::Failed)));
        counts.remove(Phase::Running, 5);
        assert_eq!((counts.of(Phase::Running), counts.total()), (0, 15));
        assert_eq!(
            serde_json::to_string(&counts).expect("it serialises"),
            r#"{"failed":3,"succeeded":12}"#
        );
    }
}
