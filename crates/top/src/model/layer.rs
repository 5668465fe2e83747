//! What lies above the list or the log until the user has answered or has read it.

use super::details::Details;
use super::event::ChangeAsk;

#[derive(Debug)]
pub(crate) enum Layer {
    Help,
    Details(Box<Details>),
    /// A change that is made once the user agrees.
    Confirm {
        ask: ChangeAsk,
        question: String,
    },
    /// One of several, by its place.
    Choose {
        what: Choice,
        place: usize,
    },
    Write {
        what: Written,
        text: String,
        /// What to go back to if the user gives up.
        before: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    State,
    Log,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Filter,
    Search,
}

/// A longer text is not taken.
pub(crate) const MAX_WRITTEN_CHARACTERS: usize = 200;

/// The states that the list can be limited to; the first is no limit.
pub(crate) const STATES: [Option<&str>; 9] = [
    None,
    Some("active"),
    Some("running"),
    Some("queued"),
    Some("ended"),
    Some("failed"),
    Some("succeeded"),
    Some("cancelled"),
    Some("lost"),
];
