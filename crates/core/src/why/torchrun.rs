//! The table in which torchrun lists the ranks that failed, and which failed first.

use super::lines::{Line, compiled, printable};
use super::{Form, LogError};
use regex::bytes::Regex;
use std::sync::OnceLock;

/// The failure that torchrun saw first.
pub(super) struct Root {
    pub(super) at: usize,
    pub(super) rank: u32,
    pub(super) local_rank: Option<u32>,
    exit_code: Option<String>,
    host: Option<String>,
}

/// The last table of a log.
pub(super) fn root(lines: &[Line]) -> Option<Root> {
    static ENTRY: OnceLock<Regex> = OnceLock::new();
    let at = lines.iter().rposition(|line| {
        line.text()
            .starts_with(b"Root Cause (first observed failure)")
    })?;
    let entry = compiled(
        &ENTRY,
        r"^\s+(rank|exitcode|host)\s+: (\S+)(?: \(local_rank: (\d+)\))?",
    );
    let (mut rank, mut local_rank, mut exit_code, mut host) = (None, None, None, None);
    for line in lines[at..].iter().take(12) {
        let Some(found) = entry.captures(line.text()) else {
            continue;
        };
        let value = || found.get(2).map(|value| printable(value.as_bytes(), 80));
        match found.get(1).map(|name| name.as_bytes()) {
            Some(b"rank") => {
                rank = value().and_then(|digits| digits.parse().ok());
                local_rank = found
                    .get(3)
                    .and_then(|digits| std::str::from_utf8(digits.as_bytes()).ok()?.parse().ok());
            }
            Some(b"exitcode") => exit_code = value(),
            _ => host = value(),
        }
    }
    Some(Root {
        at,
        rank: rank?,
        local_rank,
        exit_code,
        host,
    })
}

impl Root {
    /// The error from the table, for a rank whose traceback is not in the log.
    pub(super) fn error(&self) -> LogError {
        let code = self
            .exit_code
            .as_deref()
            .map(|code| format!(" with code {code}"))
            .unwrap_or_default();
        let host = self
            .host
            .as_deref()
            .map(|host| format!(" on {host}"))
            .unwrap_or_default();
        let message = format!(
            "torchrun saw rank {} fail first{host}{code}; its traceback is not in this log",
            self.rank
        );
        LogError {
            rank: Some(self.rank),
            ..LogError::new(Form::Launcher, message)
        }
    }
}
