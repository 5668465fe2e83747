//! From the messages in a log to the one that is the cause.

use super::crash;
use super::lines::{self, After, Kind, Line, printable};
use super::quote::Log;
use super::rules::{self, Match};
use super::torchrun::{self, Root};
use super::trace::{self, Block, Chain, Link, Standing};
use super::{Class, Finding, LogError, modules};
use std::collections::BTreeMap;

/// The number of lines of a long exception message that the rules read, at most.
const MAX_MESSAGE_LINES_READ: usize = 20;

/// Something in the log that can end a program.
pub(super) struct Event<'a> {
    pub(super) at: usize,
    rank: Option<u32>,
    /// It counts only if no other message shows the cause.
    follower: bool,
    /// `None` for an exception that no rule knows. It is a cause all the same, so that followers do
    /// not count.
    found: Option<Match>,
    /// The traceback of the cause and the last of its chain.
    pub(super) chain: Option<(&'a Block<'a>, &'a Block<'a>)>,
}

/// The result of reading a log.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) finding: Option<Finding>,
    pub(super) error: Option<LogError>,
}

pub(super) fn judge(lines: &[Line]) -> Judgement {
    let traces = trace::traces(lines);
    let crashes = crash::crashes(lines, &traces.inside);
    let kinds: Vec<Kind> = lines.iter().map(lines::kind).collect();
    let mut explained = traces.inside.clone();
    let mut events: Vec<Event> = traces
        .chains
        .iter()
        .filter_map(|chain| of_chain(lines, chain))
        .collect();
    let (anywhere, mut at_the_end) = of_lines(lines, &explained);
    events.extend(anywhere);
    for event in events.iter().chain(&at_the_end) {
        explained[event.at] = true;
    }
    let after = After::new(&kinds, &explained);
    at_the_end.retain(|event| after.is_last_message(event.at));
    events.append(&mut at_the_end);
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

/// Messages outside tracebacks: those that count anywhere, and those that count only at the end.
fn of_lines<'a>(lines: &[Line], inside: &[bool]) -> (Vec<Event<'a>>, Vec<Event<'a>>) {
    let (mut anywhere, mut at_the_end) = (Vec::new(), Vec::new());
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
        at_the_end.extend(rules::at_end(line.text()).map(|found| event(true, found)));
    }
    (anywhere, at_the_end)
}

/// The cause among the events, which are in order of their lines. A process ends by one cause, so the
/// last cause of each rank counts. A rank that torch names has certainly ended, so it comes before
/// the rest. Between ranks, the one that torchrun saw fail first is the cause, else the first in the
/// log. If all events are followers, the least likely consequence counts. Among equals the last counts,
/// because a script goes on after its earlier complaints.
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
            .min_by_key(|event| class(event).map(Class::consequence_level))
    };
    named.or(unnamed).or_else(follower)
}

/// The event of a chain of tracebacks.
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

/// Whether the earlier of two chained exceptions is the cause. It is not where the program caught it,
/// tried something else, and that failed; nor where it only reports the end of another process.
/// `before` is the exception directly before the later one: the one that was being handled.
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
        // An exception that a rule knows counts more than one that no rule knows.
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

/// The rule that fits the last line of a traceback and the rest of its message.
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
