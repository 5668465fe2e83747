//! What can happen, and what the model asks for.

use super::details::Why;
use super::gpus::ClusterGpus;
use super::log::LogFile;
use super::rows::Window;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use std::time::Duration;
use towline_core::time::Moment;
use towline_core::{Error, RunId};
use towline_wire::api::log::LogRef;
use towline_wire::api::stream::{Item, LogFrom};

/// The time: the moment for people, and a clock that never jumps, which spans are measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Now {
    pub(crate) wall: Moment,
    pub(crate) steady: Duration,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resize {
        width: u16,
        height: u16,
    },
    Item(Box<Item>),
    /// The stream of events ended; another one begins soon.
    StreamEnded(String),
    Answer(Answer),
    /// Time has passed.
    Tick,
}

/// What the model wants to be done. None of it makes the screen wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    Rows(RowsAsk),
    Clusters,
    Logs(RunId),
    Lines(LinesAsk),
    Search(SearchAsk),
    Why(RunId),
    Change(ChangeAsk),
    /// Changes which logs the stream follows.
    Follow {
        stream: String,
        logs: Vec<LogFrom>,
    },
    Suspend,
    Repaint,
    Quit,
}

/// A window of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RowsAsk {
    pub(crate) question: Question,
    pub(crate) offset: u64,
    pub(crate) limit: u32,
}

/// Which runs are listed, in which order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// A state, `active` or `ended`.
    pub(crate) state: Option<&'static str>,
    /// The sweep whose runs are listed one by one.
    pub(crate) sweep: Option<RunId>,
    pub(crate) active_first: bool,
}

/// Lines of a log. The answer carries the number, so that a late one is known as such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinesAsk {
    pub(crate) serial: u64,
    pub(crate) log: LogRef,
    pub(crate) from: LinesFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinesFrom {
    Line { first: u64, count: u32 },
    End(u32),
}

/// Where a text is in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchAsk {
    pub(crate) log: LogRef,
    pub(crate) pattern: String,
}

/// What a user can do to runs from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Abort,
    Resubmit,
    Hold,
    Resume,
}

impl Verb {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Resubmit => "resubmit",
            Self::Hold => "hold",
            Self::Resume => "resume",
        }
    }
}

/// A change of a run or sweep, by its whole id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeAsk {
    pub(crate) verb: Verb,
    pub(crate) id: RunId,
}

/// Why something could not be done, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        Self {
            message: error.to_string(),
            hints: error.hints().to_vec(),
        }
    }
}

impl Refusal {
    /// In one line.
    pub(crate) fn text(&self) -> String {
        match self.hints.first() {
            Some(hint) => format!("{} · {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

pub(crate) type Answered<T> = Result<T, Refusal>;

/// An answer to something that was asked for.
#[derive(Debug)]
pub(crate) enum Answer {
    Rows(RowsAsk, Answered<Window>),
    Clusters(Answered<Vec<ClusterGpus>>),
    Logs(RunId, Answered<Vec<LogFile>>),
    Lines(LinesAsk, Answered<FoundLines>),
    Search(SearchAsk, Answered<Found>),
    Why(RunId, Answered<Why>),
    Change(ChangeAsk, Answered<String>),
}

/// Lines of a log, as they were read.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
pub(crate) struct FoundLines {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) lines: Vec<String>,
    pub(crate) total: u64,
    pub(crate) is_open: bool,
}

/// Where a text was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
pub(crate) struct Found {
    pub(crate) count: u64,
    pub(crate) lines: Vec<u64>,
}
