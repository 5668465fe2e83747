//! From the messages in a log to the one that is the cause.

use super::crash::{self, Crash};
use super::frame::{Frame, own};
use super::lines::{self, After, Kind, Line, printable};
use super::rules::{self, Match};
use super::torchrun::{self, Root};
use super::trace::{self, Block, Chain, Link, Standing};
use super::{Class, Finding, Form, LogError, MAX_LINE_CHARACTERS_SHOWN, complaint, modules};
use std::collections::BTreeMap;

/// How many lines of a long exception message are read for what it means.
const MAX_MESSAGE_LINES_READ: usize = 20;
/// How many lines below the exception are shown with it.
const MAX_LINES_SHOWN_BELOW: usize = 4;

/// Something in the log that can end a program.
struct Event<'a> {
    at: usize,
    rank: Option<u32>,
    /// Unless another message shows the cause.
    follower: bool,
    /// `None` for an exception that no rule knows: it is a cause all the same, and silences the
    /// rest.
    found: Option<Match>,
    /// The traceback of the cause and the last of its chain.
    chain: Option<(&'a Block<'a>, &'a Block<'a>)>,
}

/// What a log comes down to.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) finding: Option<Finding>,
    pub(super) error: Option<LogError>,
}

pub(super) fn judge(lines: &[Line]) -> Judgement {
    let traces = trace::traces(lines);
    let crashes = crash::crashes(lines, &traces.inside);
    let kinds: Vec<Kind> = lines.iter().map(lines::kind).collect();
    let mut spoken_for = traces.inside.clone();
    let mut events: Vec<Event> = traces
        .chains
        .iter()
        .filter_map(|chain| of_chain(lines, chain))
        .collect();
    let (anywhere, mut last_words) = of_lines(lines, &spoken_for);
    events.extend(anywhere);
    for event in events.iter().chain(&last_words) {
        spoken_for[event.at] = true;
    }
    let after = After::new(&kinds, &spoken_for);
    last_words.retain(|event| after.is_last_word(event.at));
    events.append(&mut last_words);
    events.sort_by_key(|event| event.at);
    let root = torchrun::root(lines);
    let (ended, went_on): (Vec<Event>, Vec<Event>) = events
        .into_iter()
        .partition(|event| !after.went_on(event.at));
    let log = Log {
        lines,
        kinds: &kinds,
        inside: &traces.inside,
        crashes: &crashes,
        root: root.as_ref(),
    };
    if let Some(event) = choose(&ended, root.as_ref()) {
        let finding = event
            .found
            .as_ref()
            .and_then(|found| found.finding(lines[event.at].evidence()));
        return Judgement {
            error: log.of_event(event, finding.as_ref()),
            finding,
        };
    }
    Judgement {
        finding: None,
        error: log.unknown(&ended, &went_on),
    }
}

/// Messages outside tracebacks: those that count anywhere, and those that count as last words only.
fn of_lines<'a>(lines: &[Line], inside: &[bool]) -> (Vec<Event<'a>>, Vec<Event<'a>>) {
    let (mut anywhere, mut last_words) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !inside[*at]) {
        let event = |follower, found| Event {
            at,
            rank: line.rank,
            follower,
            found: Some(found),
            chain: None,
        };
        anywhere
            .extend(rules::anywhere(line.text()).map(|found| event(found.rule.follower, found)));
        last_words.extend(rules::last_word(line.text()).map(|found| event(true, found)));
    }
    (anywhere, last_words)
}

/// The cause among the events, which are in order of their lines. A process dies of one thing, so
/// of each rank's causes the last ended it. A rank that torch names is dead for sure, hence comes
/// before the rest; between ranks the one that torchrun saw fail first is the cause, or else the
/// first in the log. Of followers alone the least likely echo counts, and of several the last: a
/// script's earlier complaints did not end it.
fn choose<'e, 'a>(events: &'e [Event<'a>], root: Option<&Root>) -> Option<&'e Event<'a>> {
    let mut last_of_rank = BTreeMap::new();
    for event in events.iter().filter(|event| !event.follower) {
        last_of_rank.insert(event.rank, event);
    }
    let unnamed = last_of_rank.remove(&None);
    let seen_first = root.and_then(|root| {
        last_of_rank
            .get(&Some(root.rank))
            .or_else(|| last_of_rank.get(&Some(root.local_rank?)))
            .copied()
    });
    let named = seen_first.or_else(|| last_of_rank.into_values().min_by_key(|event| event.at));
    let class = |event: &&Event| event.found.as_ref().and_then(|found| found.rule.class);
    let follower = || {
        events
            .iter()
            .rev()
            .filter(|event| class(event).is_some())
            .min_by_key(|event| class(event).map(Class::echo))
    };
    named.or(unnamed).or_else(follower)
}

/// What a chain of tracebacks comes down to.
fn of_chain<'a>(lines: &[Line], chain: &'a Chain<'a>) -> Option<Event<'a>> {
    let last = chain.last()?;
    let mut chain = chain.iter().map(|block| (block, exception(lines, block)));
    let first = chain.next()?;
    let mut before = first.0;
    let (block, found) = chain.fold(first, |kept, next| {
        let before = std::mem::replace(&mut before, next.0);
        if is_the_cause(lines, &kept, before, &next) {
            kept
        } else {
            next
        }
    });
    let follower = block.standing == Standing::Thread
        || found.as_ref().is_some_and(|found| found.rule.follower);
    Some(Event {
        at: block.at,
        rank: lines[block.at].rank,
        follower,
        found,
        chain: Some((block, last)),
    })
}

type Judged<'a> = (&'a Block<'a>, Option<Match>);

/// Whether the earlier of two chained exceptions is the cause. It is, except where the program
/// caught it, tried something else, and that failed; or where it only reports another's end.
/// `before` stands right before the later one: it is what was being handled.
fn is_the_cause(
    lines: &[Line],
    (earlier, was): &Judged,
    before: &Block,
    (later, is): &Judged,
) -> bool {
    let class = |found: &Option<Match>| found.as_ref().and_then(|found| found.rule.class);
    if was.as_ref().is_some_and(|was| was.rule.class.is_none()) {
        return is.as_ref().is_some_and(|is| is.rule.class.is_none());
    }
    let Some(first) = class(was) else {
        // What a rule knows says more than what none does.
        let tried_else = later.link == Link::WhileHandling
            && is_often_caught(lines[before.at].text())
            && !later.rewords(before);
        return class(is).is_none() && (is.is_some() || !tried_else);
    };
    if later.link != Link::WhileHandling || !first.is_often_caught() {
        return true;
    }
    class(is) == Some(first) || later.rewords(earlier)
}

/// Exceptions that programs catch to try something else.
fn is_often_caught(exception: &[u8]) -> bool {
    let name = exception
        .split(|byte| *byte == b':')
        .next()
        .unwrap_or_default();
    [
        &b"KeyError"[..],
        b"AttributeError",
        b"IndexError",
        b"ImportError",
        b"StopIteration",
        b"NotImplementedError",
        b"Empty",
        b"TimeoutError",
    ]
    .iter()
    .any(|caught| name.ends_with(caught))
}

/// What the last line of a traceback says, with the rest of its message.
fn exception(lines: &[Line], block: &Block) -> Option<Match> {
    let rank = lines[block.at].rank;
    let mut message = lines[block.at].text().to_vec();
    let rest = lines[block.at + 1..]
        .iter()
        .take(MAX_MESSAGE_LINES_READ * 10)
        .filter(|line| line.rank == rank)
        .take(MAX_MESSAGE_LINES_READ);
    for line in rest {
        message.push(b'\n');
        message.extend_from_slice(line.text());
    }
    let found = rules::exception(&message)?;
    let not_a_file = found.rule.class == Some(Class::FileNotFound) && block.starts_program();
    if not_a_file {
        Some(found.into_command())
    } else {
        Some(found)
    }
}

impl Match {
    fn finding(&self, evidence: String) -> Option<Finding> {
        let class = self.rule.class?;
        let name = printable(&self.name, 120).replace('`', "'");
        let is_module = class == Class::MissingModule;
        let next_step = if is_module {
            modules::advice(&name, None)
        } else {
            self.rule.advice.replace("{}", &name)
        };
        Some(Finding {
            class,
            evidence,
            transient: self.rule.transient,
            next_step,
            module: is_module.then_some(name),
        })
    }
}

/// A log with what was found in it.
struct Log<'a> {
    lines: &'a [Line<'a>],
    kinds: &'a [Kind],
    inside: &'a [bool],
    crashes: &'a [Crash],
    root: Option<&'a Root>,
}

impl Log<'_> {
    /// The words in which the log tells of an event.
    fn of_event(&self, event: &Event, finding: Option<&Finding>) -> Option<LogError> {
        if let Some((cause, last)) = event.chain {
            return Some(self.told(cause, last));
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

    /// The error of a log whose cause no rule knows: the program's last words before those of what
    /// started it, and those before an exception after which it went on.
    fn unknown(&self, ended: &[Event], went_on: &[Event]) -> Option<LogError> {
        let spoken_for = self.spoken_for(ended);
        let after = After::new(self.kinds, &spoken_for);
        let outside = |at: &usize| !self.inside[*at];
        let complaint = || {
            let mut last = (0..self.lines.len())
                .rev()
                .filter(outside)
                .take_while(|at| after.is_last_word(*at));
            last.find_map(|at| {
                Some(LogError {
                    more: self.more(at),
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
        let thread = || chain(Standing::Thread).map(|(cause, last)| self.told(cause, last));
        let reported = || {
            self.root
                .filter(|root| !after.went_on(root.at))
                .map(Root::error)
        };
        let wrapper = || {
            chain(Standing::Fatal).map(|(cause, last)| LogError {
                report: true,
                ..self.told(cause, last)
            })
        };
        let doubtful = || {
            went_on
                .iter()
                .rev()
                .find_map(|event| event.chain)
                .map(|(cause, last)| LogError {
                    went_on: true,
                    ..self.told(cause, last)
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
                more: self.more(at),
                ..error
            })
        })
    }

    fn spoken_for(&self, events: &[Event]) -> Vec<bool> {
        let mut spoken_for = self.inside.to_vec();
        for event in events {
            spoken_for[event.at] = true;
        }
        for crash in self.crashes {
            spoken_for[crash.lines.clone()].fill(true);
        }
        spoken_for
    }

    /// An exception as people are shown it.
    fn told(&self, cause: &Block, last: &Block) -> LogError {
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
            more: self.more(cause.at),
            ended_as,
            rank: line.rank,
            thread,
            ..LogError::new(form, printable(line.text(), MAX_LINE_CHARACTERS_SHOWN))
        }
    }

    /// The lines below a message that may belong to it.
    fn more(&self, at: usize) -> Vec<String> {
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
