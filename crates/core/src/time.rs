//! Moments: milliseconds since 1970, UTC. The clock itself is the caller's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A moment in UTC, in milliseconds since 1970.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Moment(pub i64);

impl Moment {
    /// Milliseconds from `earlier` to here; never negative.
    pub const fn since(self, earlier: Self) -> u64 {
        let span = self.0.saturating_sub(earlier.0);
        if span < 0 { 0 } else { span.unsigned_abs() }
    }
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
    #[must_use]
    pub const fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add_unsigned(millis))
    }
}

impl fmt::Display for Moment {
    /// `2026-11-15T06:48:00.123Z`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = time::macros::format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        );
        let text = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|moment| moment.format(&format).ok());
        match text {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}ms", self.0),
        }
    }
}

/// A span in the two largest units that matter: `3m12s`, `4h07m`, `2d3h`, `0.4s`.
pub fn human_millis(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{}.{}s", seconds, millis % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_spans_read_well() {
        assert_eq!(Moment(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Moment(1_763_189_280_123).to_string(),
            "2025-11-15T06:48:00.123Z"
        );
        assert_eq!(human_millis(420), "0.4s");
        assert_eq!(human_millis(192_000), "3m12s");
        assert_eq!(human_millis(14_820_000), "4h07m");
    }

    #[test]
    fn a_span_is_never_negative_and_seconds_round_down() {
        assert_eq!(Moment(1_500).since(Moment(200)), 1_300);
        assert_eq!(Moment(200).since(Moment(1_500)), 0);
        assert_eq!(Moment(1_999).seconds(), 1);
        assert_eq!(Moment(-1).seconds(), -1);
        assert_eq!(Moment(-1_001).seconds(), -2);
        assert_eq!(Moment(5).plus_millis(7), Moment(12));
    }

    #[test]
    fn a_span_is_told_in_the_units_that_matter() {
        let told = [
            9_900,
            10_000,
            59_999,
            60_000,
            3_600_000,
            86_400_000,
            183_600_000,
        ];
        assert_eq!(
            told.map(human_millis),
            ["9.9s", "10s", "59s", "1m00s", "1h00m", "1d00h", "2d03h"]
        );
    }
}
