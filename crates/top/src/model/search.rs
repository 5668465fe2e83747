//! Where a text is in the log that is shown.

use super::event::{Answered, Ask, Found, SearchAsk};
use towline_wire::api::log::LogRef;

#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) pattern: String,
    pub(crate) found: Option<Found>,
    pub(crate) trouble: Option<String>,
    /// The place of the shown match among the found ones.
    pub(crate) place: usize,
    is_to_ask: bool,
}

impl Search {
    pub(crate) fn begin(&mut self, pattern: String) {
        *self = Self {
            is_to_ask: !pattern.is_empty(),
            pattern,
            ..Self::default()
        };
    }

    pub(super) fn ask(&mut self, log: Option<&LogRef>) -> Option<Ask> {
        let log = log?.clone();
        std::mem::take(&mut self.is_to_ask).then(|| {
            Ask::Search(SearchAsk {
                log,
                pattern: self.pattern.clone(),
            })
        })
    }

    /// Takes the answer, and returns the line of the first match from `first` on.
    pub(crate) fn take(
        &mut self,
        ask: &SearchAsk,
        answer: Answered<Found>,
        first: u64,
    ) -> Option<u64> {
        if ask.pattern != self.pattern {
            return None;
        }
        match answer {
            Ok(found) => {
                let place = found.lines.iter().position(|line| *line >= first);
                self.place = place.unwrap_or(0);
                let line = found.lines.get(self.place).copied();
                self.found = Some(found);
                line
            }
            Err(refusal) => {
                self.trouble = Some(refusal.text());
                None
            }
        }
    }

    /// The line of the next match, or of the one before.
    pub(crate) fn next(&mut self, forward: bool) -> Option<u64> {
        let lines = &self.found.as_ref()?.lines;
        let step = if forward {
            1
        } else {
            lines.len().saturating_sub(1)
        };
        self.place = (self.place + step).checked_rem(lines.len())?;
        lines.get(self.place).copied()
    }
}
