//! A workspace: a folder on fast scratch, the place of its backups, their interval, and which of
//! them are kept.

use crate::quantity::Span;
use crate::time::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The time between automatic backups, by default.
pub const DEFAULT_BACKUP_INTERVAL: Span = Span(30 * 60);
/// The shortest interval that is accepted.
pub const MIN_BACKUP_INTERVAL: Span = Span(10);

const HOUR_MILLIS: i64 = 3_600_000;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;
const WEEK_MILLIS: i64 = 7 * DAY_MILLIS;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workspace {
    /// The machine that has it, as ssh knows it, or an alias such as `tow-node`; this machine if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_config: Option<String>,
    /// The folder on that machine; `~` and `$USER` are that machine's.
    pub path: String,
    /// The place of backups: a folder as that machine sees it, or `DATASTORE:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Patterns as in a `.gitignore`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Commands that make its environment, each for a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
}

/// The backups to keep: the newest few, and the newest of each of the last hours, days and weeks
/// that have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Keep {
    /// The newest this many.
    pub last: u32,
    /// The newest of each of this many hours.
    pub hourly: u32,
    /// The newest of each of this many days.
    pub daily: u32,
    /// The newest of each of this many weeks.
    pub weekly: u32,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            last: 10,
            hourly: 24,
            daily: 14,
            weekly: 8,
        }
    }
}

impl Keep {
    /// Which of the backups taken at these moments are kept. The newest always is.
    pub fn kept(&self, moments: &[Moment]) -> Vec<bool> {
        let mut order: Vec<usize> = (0..moments.len()).collect();
        order.sort_by_key(|number| std::cmp::Reverse(moments[*number]));
        let mut kept = vec![false; moments.len()];
        for number in order.iter().take(self.last.max(1) as usize) {
            kept[*number] = true;
        }
        for (span, count) in [
            (HOUR_MILLIS, self.hourly),
            (DAY_MILLIS, self.daily),
            (WEEK_MILLIS, self.weekly),
        ] {
            let mut seen = HashSet::new();
            for number in &order {
                if seen.len() >= count as usize {
                    break;
                }
                if seen.insert(moments[*number].0.div_euclid(span)) {
                    kept[*number] = true;
                }
            }
        }
        kept
    }
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the last {}, then one for each of {} hours, {} days, {} weeks",
            self.last.max(1),
            self.hourly,
            self.daily,
            self.weekly
        )
    }
}

/// When the next backup is due, after one that began at `last`. A clock that was set back does not
/// delay it.
pub fn due(now: Moment, every: Span, last: Option<Moment>) -> Moment {
    match last {
        Some(last) if last <= now => last.plus_millis(every.0 * 1000),
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(keep: Keep, moments: &[i64]) -> Vec<i64> {
        let moments: Vec<Moment> = moments.iter().map(|moment| Moment(*moment)).collect();
        let kept = keep.kept(&moments);
        moments
            .iter()
            .zip(kept)
            .filter(|(_, kept)| *kept)
            .map(|(moment, _)| moment.0)
            .collect()
    }

    #[test]
    fn the_newest_stays_whatever_the_policy() {
        let none = Keep {
            last: 0,
            hourly: 0,
            daily: 0,
            weekly: 0,
        };
        assert_eq!(kept(none, &[5, 9, 1]), [9]);
        assert!(kept(none, &[]).is_empty());
    }

    #[test]
    fn one_of_each_hour_day_and_week_stays() {
        let every_half_hour: Vec<i64> = (0..40 * 48)
            .map(|number| number * HOUR_MILLIS / 2)
            .collect();
        let keep = Keep {
            last: 3,
            hourly: 4,
            daily: 3,
            weekly: 2,
        };
        let kept = kept(keep, &every_half_hour);
        // In half hours before midnight of day 40: the last three; the ends of the three hours
        // before; of the two days before; of the week before, which ended with day 35.
        let before = |halves: i64| 40 * DAY_MILLIS - halves * HOUR_MILLIS / 2;
        assert_eq!(
            kept,
            [
                before(1 + 5 * 48),
                before(1 + 2 * 48),
                before(1 + 48),
                before(7),
                before(5),
                before(3),
                before(2),
                before(1)
            ]
        );
    }

    #[test]
    fn backups_long_ago_stay_while_there_are_no_others() {
        let keep = Keep {
            last: 1,
            hourly: 0,
            daily: 2,
            weekly: 0,
        };
        assert_eq!(
            kept(keep, &[0, HOUR_MILLIS, 400 * DAY_MILLIS]),
            [HOUR_MILLIS, 400 * DAY_MILLIS]
        );
    }

    #[test]
    fn a_backup_is_due_after_its_time_and_at_once_when_the_clock_was_set_back() {
        let every = Span(60);
        assert_eq!(due(Moment(1_000_000), every, None), Moment(1_000_000));
        assert_eq!(
            due(Moment(1_000_000), every, Some(Moment(990_000))),
            Moment(1_050_000)
        );
        assert_eq!(
            due(Moment(1_000_000), every, Some(Moment(9_000_000))),
            Moment(1_000_000)
        );
    }
}
