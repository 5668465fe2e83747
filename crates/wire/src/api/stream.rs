//! The stream of events: every change of every run, and the bytes of logs as they are written.
//!
//! A stream that ends, for whatever reason, is taken up again from the cursor of its last item:
//! nothing is missing and nothing comes twice. The cursor is made of numbers of the history and
//! outlives every process.

use crate::api::envelope::Progress;
use crate::api::log::LogRef;
use crate::report::transfer::Direction;
use crate::report::{Run, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_core::event::Recorded;

/// Asks for the stream.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// Go on behind this cursor; without one, from now on.
    pub cursor: Option<String>,
    /// Leave out what happens to runs.
    pub no_runs: bool,
    /// The logs to follow, each from an offset.
    pub logs: Vec<LogFrom>,
}

/// A log to follow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogFrom {
    /// The run.
    pub run: RunId,
    /// The attempt.
    pub attempt: u32,
    /// The rank or the set-up.
    pub source: LogSource,
    /// The offset of the first byte that is wanted.
    #[serde(default)]
    pub offset: u64,
}

impl LogFrom {
    /// The log.
    pub fn log(&self) -> LogRef {
        LogRef::new(&self.run, self.attempt, self.source)
    }
}

/// Changes which logs a stream follows.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsLogs {
    /// The stream, by the name in its first item.
    pub stream: String,
    /// All logs that it follows from now on. A log that it followed already goes on where it is.
    pub logs: Vec<LogFrom>,
}

/// An item of the stream.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// The first item.
    Begun {
        /// The name of the stream.
        stream: String,
        /// Where it begins.
        cursor: String,
    },
    /// The cursor that was given is not one of this history (it was replaced, or too much of it was
    /// removed): ask for all lists again. The stream begins at the present.
    Reset {
        /// Where it begins.
        cursor: String,
    },
    /// Something happened to runs.
    Runs(Changes),
    /// Bytes that were added to a log.
    Log(LogPart),
    /// A log became shorter than what was sent: its job has cut it. It goes on from that length.
    LogCut {
        /// The log.
        #[serde(flatten)]
        log: LogRef,
        /// The length that it was cut to.
        length: u64,
    },
    /// Facts of the far clusters changed: whether they answer, and since when not.
    Clusters {
        /// The clusters.
        clusters: Vec<ClusterNews>,
    },
    /// Tunnels changed.
    Tunnels {
        /// The tunnels that changed, as they are now.
        tunnels: Vec<TunnelNews>,
    },
    /// Backups of workspaces began, ended or failed.
    Workspaces {
        /// The workspaces, as they are now.
        workspaces: Vec<WorkspaceNews>,
    },
    /// Transfers of data by any `tow` of this user on this machine.
    Transfers {
        /// Those that began or went on, as they are now.
        transfers: Vec<TransferNews>,
        /// Those that are over, by their ids. How they ended is the answer of who began them.
        over: Vec<String>,
    },
    /// Nothing happened for a while; the stream is alive.
    Alive {
        /// The time of this machine.
        now: Time,
    },
}

/// What happened to runs.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Changes {
    /// The cursor behind these changes.
    pub cursor: String,
    /// The events, in their order.
    pub events: Vec<Recorded>,
    /// The runs of these events, and new runs, as they are now.
    pub runs: Vec<Run>,
    /// The runs that were removed from the history.
    pub removed: Vec<RunId>,
}

/// Bytes of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogPart {
    /// The log.
    #[serde(flatten)]
    pub log: LogRef,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes: the next part begins at `offset + length`.
    pub length: u64,
    /// The bytes, if they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// How a far cluster answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClusterNews {
    /// Its name.
    pub name: String,
    /// When it last answered.
    pub seen: Option<Time>,
    /// Why it does not answer; null if it does.
    pub trouble: Option<String>,
    /// When its facts (nodes, partitions, quotas) were last read; null if they are not known here.
    pub facts: Option<Time>,
}

/// How a tunnel is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TunnelNews {
    /// Its name.
    pub name: String,
    /// `closed`, `connecting`, `open` or `failing`.
    pub state: &'static str,
    /// Its port on this machine; null if it is closed.
    pub port: Option<u16>,
    /// When it came into this state; null if it is closed.
    pub since: Option<Time>,
    /// Why it fails.
    pub reason: Option<String>,
}

/// How the backups of a workspace go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspaceNews {
    /// Its name.
    pub name: String,
    /// It is backed up by itself.
    pub is_automatic: bool,
    /// When the last backup began.
    pub began: Option<Time>,
    /// When the last good one ended.
    pub good: Option<Time>,
    /// Why backups fail; null if the last one was good.
    pub trouble: Option<String>,
}

/// A transfer that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransferNews {
    /// Its name among the transfers that are under way.
    pub id: String,
    /// The path, as it is shown.
    pub path: String,
    /// Which way it goes.
    pub direction: Direction,
    /// When it began.
    pub began: Time,
    /// How far it is.
    pub progress: Progress,
}

/// A place in the history: everything up to it has been told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The history itself: another one begins to count anew.
    pub history: String,
    /// The number of the last event.
    pub event: i64,
    /// The number of the last run.
    pub run: i64,
    /// The number of the last removal.
    pub removal: i64,
}

impl fmt::Display for Place {
    /// `4f1b…-120-14-2`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            history,
            event,
            run,
            removal,
        } = self;
        write!(f, "{history}-{event}-{run}-{removal}")
    }
}

/// The name of a history that is not there yet.
const NO_HISTORY: &str = "none";

impl Place {
    /// The place before everything, while there is no history.
    pub fn none() -> Self {
        Self {
            history: NO_HISTORY.to_owned(),
            ..Self::default()
        }
    }

    /// The same place in the history of that name, if this one was told before there was a history.
    #[must_use]
    pub fn in_history(self, name: &str) -> Self {
        if self.history == NO_HISTORY {
            Self {
                history: name.to_owned(),
                ..Self::default()
            }
        } else {
            self
        }
    }

    /// A place from its text; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let history = parts.next().filter(|history| {
            history.len() <= 64 && history.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })?;
        let mut number = || {
            let number: i64 = parts.next()?.parse().ok()?;
            (number >= 0).then_some(number)
        };
        let place = Self {
            history: history.to_owned(),
            event: number()?,
            run: number()?,
            removal: number()?,
        };
        parts.next().is_none().then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_nothing_else_is_one() {
        let place = Place {
            history: "4f1b".into(),
            event: 120,
            run: 14,
            removal: 2,
        };
        assert_eq!(Place::parse(&place.to_string()), Some(place));
        for text in [
            "",
            "4f1b",
            "4f1b-1-2",
            "4f1b-1-2-3-4",
            "4f1b--1-2-3",
            "4f 1-1-2-3",
            "4f1b-1-2-x",
        ] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
