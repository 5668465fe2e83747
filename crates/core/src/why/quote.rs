//! The error of a log in its own words.

use super::crash::Crash;
use super::frame::{Frame, own};
use super::judge::Event;
use super::lines::{After, Kind, Line, printable};
use super::torchrun::Root;
use super::trace::{self, Block, Standing};
use super::{Class, Finding, Form, LogError, MAX_LINE_CHARACTERS_SHOWN, complaint};

/// The number of lines below the exception that are shown with it, at most.
const MAX_LINES_SHOWN_BELOW: usize = 4;

/// A log with everything that was found in it.
pub(super) struct Log<'a> {
    pub(super) lines: &'a [Line<'a>],
    pub(super) kinds: &'a [Kind],
    pub(super) inside: &'a [bool],
    pub(super) crashes: &'a [Crash],
    pub(super) root: Option<&'a Root>,
}

impl Log<'_> {
    /// The error of an event, as the log words it.
    pub(super) fn of_event(&self, event: &Event, finding: Option<&Finding>) -> Option<LogError> {
        if let Some((cause, last)) = event.chain {
            return Some(self.exception(cause, last));
        }
        let here = self
            .crashes
            .iter()
            .find(|crash| crash.lines.contains(&event.at));
        // The shell's report of a crash says less than the program's own.
        let crashed = || {
            self.crashes
                .iter()
                .rev()
                .find(|crash| crash.error.form == Form::Crash)
                .filter(|_| finding.is_some_and(|finding| finding.class == Class::Segfault))
        };
        here.or_else(crashed).map(|crash| crash.error.clone())
    }

    /// The error of a log whose cause no rule knows. The program's last messages come before those of
    /// its launcher, and these before an exception after which the program went on.
    pub(super) fn unknown(&self, ended: &[Event], went_on: &[Event]) -> Option<LogError> {
        let explained = self.explained(ended);
        let after = After::new(self.kinds, &explained);
        let outside = |at: &usize| !self.inside[*at];
        let complaint = || {
            let mut last = (0..self.lines.len())
                .rev()
                .filter(outside)
                .take_while(|at| after.is_last_message(*at));
            last.find_map(|at| {
                Some(LogError {
                    more: self.lines_below(at),
                    ..complaint::complaint(self.lines, at)?
                })
            })
        };
        let crash = || {
            self.crashes
                .iter()
                .rev()
                .find(|crash| !after.went_on(crash.lines.end - 1))
                .map(|crash| crash.error.clone())
        };
        let chain = |standing| {
            ended
                .iter()
                .rev()
                .filter_map(|event| event.chain)
                .find(move |(cause, _)| cause.standing == standing)
        };
        let thread = || chain(Standing::Thread).map(|(cause, last)| self.exception(cause, last));
        let reported = || {
            self.root
                .filter(|root| !after.went_on(root.at))
                .map(Root::error)
        };
        let wrapper = || {
            chain(Standing::Fatal).map(|(cause, last)| LogError {
                report: true,
                ..self.exception(cause, last)
            })
        };
        let doubtful = || {
            went_on
                .iter()
                .rev()
                .find_map(|event| event.chain)
                .map(|(cause, last)| LogError {
                    went_on: true,
                    ..self.exception(cause, last)
                })
        };
        complaint()
            .or_else(crash)
            .or_else(thread)
            .or_else(|| self.error_line(&after))
            .or_else(reported)
            .or_else(wrapper)
            .or_else(doubtful)
    }

    fn error_line(&self, after: &After) -> Option<LogError> {
        let lines = || (0..self.lines.len()).filter(|at| !self.inside[*at] && !after.went_on(*at));
        let first = lines().find_map(|at| complaint::compiler(&self.lines[at]));
        let last = || {
            lines()
                .rev()
                .find_map(|at| Some((at, complaint::error_line(&self.lines[at], self.kinds[at])?)))
        };
        first.or_else(|| {
            last().map(|(at, error)| LogError {
                more: self.lines_below(at),
                ..error
            })
        })
    }

    /// Marks the lines that an event, a crash or a traceback explains.
    fn explained(&self, events: &[Event]) -> Vec<bool> {
        let mut explained = self.inside.to_vec();
        for event in events {
            explained[event.at] = true;
        }
        for crash in self.crashes {
            explained[crash.lines.clone()].fill(true);
        }
        explained
    }

    /// An exception, as it is shown to people.
    fn exception(&self, cause: &Block, last: &Block) -> LogError {
        let line = &self.lines[cause.at];
        let is_syntax = trace::is_syntax(line.text());
        let shown = if is_syntax {
            cause.frames.last()
        } else {
            own(cause.frames.iter())
        };
        let form = if is_syntax {
            Form::Syntax
        } else {
            Form::Exception
        };
        let ended_as = (cause.at != last.at)
            .then(|| printable(self.lines[last.at].text(), MAX_LINE_CHARACTERS_SHOWN))
            .filter(|text| *text != printable(line.text(), MAX_LINE_CHARACTERS_SHOWN));
        let thread = cause.standing == Standing::Thread;
        LogError {
            place: shown.map(Frame::place),
            more: self.lines_below(cause.at),
            ended_as,
            rank: line.rank,
            thread,
            ..LogError::new(form, printable(line.text(), MAX_LINE_CHARACTERS_SHOWN))
        }
    }

    /// The lines below a message that may belong to it.
    fn lines_below(&self, at: usize) -> Vec<String> {
        let mut below = Vec::new();
        let rank = self.lines[at].rank;
        for next in (at + 1..self.lines.len()).take(MAX_LINES_SHOWN_BELOW * 10) {
            let line = &self.lines[next];
            if line.rank != rank {
                continue;
            }
            let ends = self.inside[next]
                || below.len() == MAX_LINES_SHOWN_BELOW
                || (self.kinds[next] != Kind::Ordinary && !line.is_indented())
                || line.text().starts_with(b"\"\"\"");
            if ends {
                break;
            }
            below.push(printable(line.text(), MAX_LINE_CHARACTERS_SHOWN));
        }
        below
    }
}
