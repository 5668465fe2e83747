//! From the messages in a log to the one that is the cause.

use super::advice;
use super::lines::{After, Line, printable};
use super::rules::{self, Match};
use super::trace::{self, Block, Chain, Link, Standing};
use super::{Class, Finding};
use std::collections::BTreeMap;

/// How many lines of a long exception message are read.
const MESSAGE_LINES: usize = 20;

/// Something in the log that can end a program.
struct Event {
    at: usize,
    rank: Option<u32>,
    /// Unless another message shows the cause.
    follower: bool,
    /// `None` for an exception that no rule knows: it is a cause all the same, and silences the rest.
    found: Option<Match>,
}

pub(super) fn cause(lines: &[Line]) -> Option<Finding> {
    let traces = trace::traces(lines);
    let mut spoken_for = traces.inside;
    let mut events: Vec<Event> = traces.chains.iter().filter_map(|chain| of_chain(lines, chain)).collect();
    let (anywhere, mut last_words) = of_lines(lines, &spoken_for);
    events.extend(anywhere);
    for event in events.iter().chain(&last_words) {
        spoken_for[event.at] = true;
    }
    let after = After::new(lines, &spoken_for);
    last_words.retain(|event| after.is_last_word(event.at));
    events.append(&mut last_words);
    events.retain(|event| !after.went_on(event.at));
    events.sort_by_key(|event| event.at);
    let event = choose(&events)?;
    event.found.as_ref()?.finding(lines[event.at].evidence())
}

/// Messages outside tracebacks: those that count anywhere, and those that count as last words only.
fn of_lines(lines: &[Line], inside: &[bool]) -> (Vec<Event>, Vec<Event>) {
    let (mut anywhere, mut last_words) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !inside[*at]) {
        let event = |follower, found| Event { at, rank: line.rank, follower, found: Some(found) };
        anywhere.extend(rules::anywhere(line.text()).map(|found| event(found.rule.follower, found)));
        last_words.extend(rules::last_word(line.text()).map(|found| event(true, found)));
    }
    (anywhere, last_words)
}

/// The cause among the events, which are in order of their lines. A process dies of one thing, so of
/// each rank's causes the last ended it. A rank that torch names is dead for sure, hence comes before
/// the rest; between ranks the first to die is the cause. Of followers alone the least likely echo
/// counts, and of several the last: a script's earlier complaints did not end it.
fn choose(events: &[Event]) -> Option<&Event> {
    let mut last_of_rank = BTreeMap::new();
    for event in events.iter().filter(|event| !event.follower) {
        last_of_rank.insert(event.rank, event);
    }
    let unnamed = last_of_rank.remove(&None);
    let named = last_of_rank.into_values().min_by_key(|event| event.at);
    let class = |event: &&Event| event.found.as_ref().and_then(|found| found.rule.class);
    let follower = || events.iter().rev().filter(|event| class(event).is_some()).min_by_key(|event| class(event).map(Class::echo));
    named.or(unnamed).or_else(follower)
}

/// What a chain of tracebacks comes down to.
fn of_chain(lines: &[Line], chain: &Chain) -> Option<Event> {
    let mut chain = chain.iter().map(|block| (block, exception(lines, block)));
    let first = chain.next()?;
    let (block, found) = chain.fold(first, |kept, next| if is_the_cause(&kept, &next) { kept } else { next });
    let follower = block.standing == Standing::Thread || found.as_ref().is_some_and(|found| found.rule.follower);
    Some(Event { at: block.at, rank: lines[block.at].rank, follower, found })
}

type Judged<'a> = (&'a Block<'a>, Option<Match>);

/// Whether the earlier of two chained exceptions is the cause. It is, except where the program caught
/// it, tried something else, and that failed; or where it only reports another's end.
fn is_the_cause((earlier, was): &Judged, (later, is): &Judged) -> bool {
    let class = |found: &Option<Match>| found.as_ref().and_then(|found| found.rule.class);
    let Some(first) = class(was) else { return was.is_none() && is.is_some() && class(is).is_none() };
    if later.link != Link::WhileHandling || !first.is_often_caught() {
        return true;
    }
    class(is) == Some(first) || later.rewords(earlier)
}

/// What the last line of a traceback says, with the rest of its message.
fn exception(lines: &[Line], block: &Block) -> Option<Match> {
    let rank = lines[block.at].rank;
    let mut message = lines[block.at].text().to_vec();
    let rest = lines[block.at + 1..].iter().take(MESSAGE_LINES * 10).filter(|line| line.rank == rank).take(MESSAGE_LINES);
    for line in rest {
        message.push(b'\n');
        message.extend_from_slice(line.text());
    }
    let found = rules::exception(&message)?;
    let not_a_file = found.rule.class == Some(Class::FileNotFound) && block.starts_program();
    if not_a_file { Some(found.into_command()) } else { Some(found) }
}

impl Match {
    fn finding(&self, evidence: String) -> Option<Finding> {
        let class = self.rule.class?;
        let name = printable(&self.name, 120).replace('`', "'");
        let next_step = if class == Class::MissingModule { advice::module(&name) } else { self.rule.advice.replace("{}", &name) };
        Some(Finding { class, evidence, transient: self.rule.transient, next_step })
    }
}
