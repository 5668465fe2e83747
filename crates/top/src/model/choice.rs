//! Which log of a run is shown: the likely one, or the one that the user chose.

use super::event::Now;
use super::log::{LogFile, LogPane};
use towline_core::cluster::LogSource;

impl LogPane {
    /// The log of the latest attempt that has any: of its first rank that wrote something, or else
    /// of its set-up.
    pub(super) fn likely(&self) -> Option<(u32, LogSource)> {
        let attempt = self.files.iter().map(|file| file.attempt).max()?;
        let latest = self.files.iter().filter(|file| file.attempt == attempt);
        let order = |file: &&LogFile| {
            let is_set_up = matches!(file.source, LogSource::SetUp(_));
            (file.bytes == 0, is_set_up, file.source)
        };
        let file = latest.min_by_key(order)?;
        Some((file.attempt, file.source))
    }

    pub(crate) fn choose(&mut self, attempt: u32, source: LogSource, now: Now) {
        self.set_log(attempt, source, now);
        self.is_chosen = true;
    }

    /// The next log of the same attempt, or the one before.
    pub(crate) fn next_source(&mut self, forward: bool, now: Now) {
        let Some(log) = &self.log else { return };
        let attempt = log.attempt;
        let sources = self.files.iter().filter(|file| file.attempt == attempt);
        let sources: Vec<LogSource> = sources.map(|file| file.source).collect();
        if let Some(source) = next(&sources, &log.source, forward) {
            self.choose(attempt, source, now);
        }
    }

    /// The same rank in the next attempt, or in the one before.
    pub(crate) fn next_attempt(&mut self, forward: bool, now: Now) {
        let Some(log) = &self.log else { return };
        let (attempt, source) = (log.attempt, log.source);
        let mut attempts: Vec<u32> = self.files.iter().map(|file| file.attempt).collect();
        attempts.dedup();
        let Some(attempt) = next(&attempts, &attempt, forward) else {
            return;
        };
        let there: Vec<&LogFile> = self
            .files
            .iter()
            .filter(|file| file.attempt == attempt)
            .collect();
        let same = there.iter().find(|file| file.source == source);
        if let Some(file) = same.or(there.first()) {
            let source = file.source;
            self.choose(attempt, source, now);
        }
    }
}

/// The neighbour of a value, round and round. A value that is not there has the first as neighbour.
fn next<T: PartialEq + Copy>(all: &[T], value: &T, forward: bool) -> Option<T> {
    let place = all.iter().position(|one| one == value);
    let step = if forward {
        1
    } else {
        all.len().saturating_sub(1)
    };
    let next = place.map_or(0, |place| place + step);
    all.get(next.checked_rem(all.len())?).copied()
}

/// `rank 3`, `set-up`.
pub(crate) fn source_text(source: LogSource) -> String {
    match source {
        LogSource::Rank(rank) => format!("rank {rank}"),
        LogSource::SetUp(0) => "set-up".to_owned(),
        LogSource::SetUp(node) => format!("set-up of node {node}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_go_round() {
        assert_eq!(next(&[1, 2, 3], &3, true), Some(1));
        assert_eq!(next(&[1, 2, 3], &1, false), Some(3));
        assert_eq!(next(&[1, 2, 3], &9, true), Some(1));
        assert_eq!(next(&[], &9, true), None);
    }

    #[test]
    fn the_rank_that_wrote_something_is_likely() {
        let file = |attempt, source, bytes| LogFile {
            attempt,
            source,
            bytes,
        };
        let pane = |files| {
            let mut pane = LogPane::default();
            pane.files = files;
            pane
        };
        let (rank, set_up) = (LogSource::Rank, LogSource::SetUp);
        let both = vec![
            file(1, rank(0), 9),
            file(2, set_up(0), 5),
            file(2, rank(0), 0),
            file(2, rank(1), 3),
        ];
        assert_eq!(pane(both.clone()).likely(), Some((2, rank(1))));
        assert_eq!(pane(both[..3].to_vec()).likely(), Some((2, set_up(0))));
        assert_eq!(pane(vec![file(1, rank(0), 0)]).likely(), Some((1, rank(0))));
        assert_eq!(pane(Vec::new()).likely(), None);
    }
}
