//! A repeated log line is written more and more rarely, with the number of its repeats.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// How many different lines are remembered.
const REMEMBERED_LINES: usize = 64;

pub(super) struct Repeats(BTreeMap<String, Said>);

struct Said {
    at: Instant,
    pause: Duration,
    /// How often the line came since it was last written.
    since: u64,
}

impl Repeats {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The text to write for this line now, if any.
    pub(super) fn line(&mut self, text: &str, now: Instant) -> Option<String> {
        self.0
            .retain(|_, said| now.saturating_duration_since(said.at) < said.pause * 2);
        if let Some(said) = self.0.get_mut(text) {
            said.since += 1;
            if now.saturating_duration_since(said.at) < said.pause {
                return None;
            }
            let line = format!("{text} (the same {} times more)", said.since);
            *said = Said {
                at: now,
                pause: (said.pause * 2).min(LONGEST_PAUSE),
                since: 0,
            };
            return Some(line);
        }
        if self.0.len() < REMEMBERED_LINES {
            self.0.insert(
                text.to_owned(),
                Said {
                    at: now,
                    pause: FIRST_PAUSE,
                    since: 0,
                },
            );
        }
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_comes_every_second_is_written_ever_more_rarely() {
        let (mut repeats, begun) = (Repeats::new(), Instant::now());
        let written: Vec<(u64, String)> = (0..1500)
            .filter_map(|second| {
                Some((
                    second,
                    repeats.line("no runner", begun + Duration::from_secs(second))?,
                ))
            })
            .collect();
        assert_eq!(written[0], (0, "no runner".to_owned()));
        assert_eq!(
            written[1],
            (5, "no runner (the same 5 times more)".to_owned())
        );
        assert!(written.len() < 12, "{written:?}");
        assert_eq!(repeats.line("another", begun), Some("another".to_owned()));
        let later = begun + Duration::from_secs(100_000);
        assert_eq!(
            repeats.line("no runner", later),
            Some("no runner".to_owned()),
            "it had stopped, and is news again"
        );
    }
}
