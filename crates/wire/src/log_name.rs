//! Names of logs: of the file that a rank or a set-up prints to, and of the objects that the parts of
//! a log are stored as.

use std::fmt;
use towline_core::cluster::LogSource;

/// One log of a run. It is displayed as `attempt-1.rank-0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogName {
    pub attempt: u32,
    pub source: LogSource,
}

impl LogName {
    pub const fn new(attempt: u32, source: LogSource) -> Self {
        Self { attempt, source }
    }

    /// The file in the folder of a run: `attempt-1.rank-0.log`.
    pub fn file(self) -> String {
        format!("{self}.log")
    }

    /// The log that a file of this name holds.
    pub fn from_file(name: &str) -> Option<Self> {
        Self::parse(name.strip_suffix(".log")?)
    }

    /// Below a run, the folder of the log's parts: `logs/attempt-1.rank-0`.
    pub fn folder(self) -> String {
        format!("logs/{self}")
    }

    /// The log and the index of a part, by its name below `logs/`: `attempt-1.rank-0/000000`.
    pub fn from_part(name: &str) -> Option<(Self, u64)> {
        let (log, index) = name.split_once('/')?;
        Some((Self::parse(log)?, index.parse().ok()?))
    }

    fn parse(name: &str) -> Option<Self> {
        let (attempt, source) = name.strip_prefix("attempt-")?.split_once('.')?;
        let source = match source.split_once('-')? {
            ("rank", rank) => LogSource::Rank(rank.parse().ok()?),
            ("setup", node) => LogSource::SetUp(node.parse().ok()?),
            _ => return None,
        };
        Some(Self::new(attempt.parse().ok()?, source))
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = self.attempt;
        match self.source {
            LogSource::Rank(rank) => write!(f, "attempt-{attempt}.rank-{rank}"),
            LogSource::SetUp(node) => write!(f, "attempt-{attempt}.setup-{node}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crew::keys;

    #[test]
    fn log_names_read_back() {
        for source in [LogSource::Rank(7), LogSource::SetUp(0)] {
            let log = LogName::new(3, source);
            assert_eq!(LogName::from_file(&log.file()), Some(log));
        }
        assert_eq!(LogName::from_file("attempt-1.script"), None);
        assert_eq!(LogName::from_file("attempt-1.rank-0"), None);
        assert_eq!(LogName::from_file("../x"), None);
    }

    #[test]
    fn a_part_is_read_as_it_is_named() {
        for source in [LogSource::Rank(0), LogSource::Rank(31), LogSource::SetUp(2)] {
            let log = LogName::new(12, source);
            let name = format!("{}/{}", log.folder(), keys::part(3));
            assert_eq!(
                LogName::from_part(name.strip_prefix("logs/").expect("below")),
                Some((log, 3))
            );
        }
        for odd in [
            "",
            "x",
            "attempt-1/0",
            "attempt-1.rank-x/0",
            "attempt-1.rank-0/",
            "attempt-1.rank-0/0/1",
            "attempt-1.rank-0.log/0",
        ] {
            assert_eq!(LogName::from_part(odd), None, "{odd}");
        }
    }
}
