//! `tow why`: explains why a run waits or failed, and what to do next.

mod advice;
mod order;
mod queued;
mod sweep;

use super::{Report, logs};
use crate::context::Context;
use crate::runs::failure::{self, Told};
use crate::runs::freshen::freshen;
use crate::runs::logfiles;
use advice::advice;
use queued::{held, waiting};
use towline_core::Result;
use towline_core::cluster::LogSource;
use towline_core::obstacle::Obstacle;
use towline_core::reason::{Cause, Ending, Outcome};
use towline_core::record::{Freshness, RunRecord};
use towline_core::state::Phase;
use towline_core::why::{Form, LogError};
use towline_engine::history::{History, Target};
use towline_wire::report::why::Why;

/// Explain why a run waits or why it failed, and what to do next.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow why @
  tow why 60ce2fc7 --json")]
pub(crate) struct Args {
    /// A run or sweep: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", default_value = "@", hide_default_value = true)]
    run: String,
}

/// How long a far cluster may take to explain.
const EXPLAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let target = history.find_to_read(&args.run)?;
    if let Target::Sweep(id, mut runs) = target {
        freshen(context, &history, &mut runs)?;
        return Ok(sweep::explain(id, &runs));
    }
    let mut records = [logs::one_run(target)?];
    freshen(context, &history, &mut records)?;
    let [record] = records;
    let has_logs = record.state.attempt > 0
        && (record.state.phase.is_ended() || record.state.held_until.is_some());
    // What is known without them is worth telling.
    let no_logs = if has_logs {
        crate::runs::far::bring_logs(context, &history, &record.id).err()
    } else {
        None
    };
    if let (Phase::Drafted | Phase::Staging, Freshness::Stale { why, .. }) =
        (record.state.phase, &record.freshness)
    {
        return Ok(unsent(&record, why));
    }
    let why = match record.state.phase {
        Phase::Ended(Outcome::Succeeded) => Why {
            summary: "it ended well".into(),
            ..begin(&record)
        },
        Phase::Ended(Outcome::Cancelled) if is_dependency(&record) => Why {
            summary: format!("it never started: {}", ending_text(&record)),
            reason: Some(Cause::Dependency.word()),
            next_step: match order::next_step(&history, &record)? {
                Some(step) => Some(step),
                None => Some(again(&history, &record)?),
            },
            ..begin(&record)
        },
        Phase::Ended(Outcome::Cancelled) => Why {
            summary: "it was cancelled by the user".into(),
            next_step: Some(again(&history, &record)?),
            ..begin(&record)
        },
        Phase::Ended(Outcome::Lost) => Why {
            summary: format!("it is lost: {}", logs::LOST),
            next_step: Some(again(&history, &record)?),
            ..begin(&record)
        },
        Phase::Ended(Outcome::Failed) => failed(context, &record)?,
        Phase::Running if record.state.held_until.is_some() => held(context, &record)?,
        Phase::Running if record.state.cancel_requested => Why {
            summary: "it is being cancelled, as you asked".into(),
            ..begin(&record)
        },
        Phase::Running => Why {
            summary: format!("it is running{}", refused(&record)),
            next_step: Some(format!("tow logs -f {}", record.id.short())),
            ..begin(&record)
        },
        _ => waiting(context, &record)?,
    };
    let mut report = Report::of(&why, text);
    if let Some(error) = no_logs {
        report = report.hint(format!("its logs could not be read: {error}"));
        report = error.hints().iter().fold(report, Report::hint);
    }
    if let Freshness::Stale { since, why } = &record.freshness {
        report = report.hint(format!(
            "this is as of {}: {} cannot be reached now: {why}",
            crate::output::local_time::shown(*since),
            record.cluster
        ));
    }
    Ok(report)
}

/// Whether a run that it waited for did not end as it had to.
fn is_dependency(record: &RunRecord) -> bool {
    let ending = record.state.ending.as_ref();
    ending.is_some_and(|ending| ending.cause == Some(Cause::Dependency))
}

fn ending_text(record: &RunRecord) -> String {
    let detail = record
        .state
        .ending
        .as_ref()
        .and_then(|ending| ending.detail.clone());
    detail.unwrap_or_else(|| "a run before it did not end as it had to".to_owned())
}

/// The report of a run that was not sent, because its cluster or a service that it needs cannot be
/// reached.
fn unsent(record: &RunRecord, why: &str) -> Report {
    let summary = format!(
        "it is recorded, and is sent once `{}` can be used: {why}",
        record.cluster
    );
    let why = Why {
        summary,
        next_step: Some("`tow doctor` tries it again and says more".into()),
        ..begin(record)
    };
    Report::of(&why, text)
}

/// The command that submits it again. A job of another tool cannot be resubmitted.
fn again(history: &History, record: &RunRecord) -> Result<String> {
    let submission = history.submission_of(&record.id)?;
    let tool = submission
        .as_ref()
        .and_then(|submission| submission.plan.foreign());
    Ok(match tool {
        Some(name) => format!(
            "submit it with the tool that made {name}, or once with `tow submit`; `tow show {}` \
                has its command",
            record.id.short()
        ),
        None => format!("tow resubmit {}", record.id.short()),
    })
}

/// Says that its cancel was refused, and why.
fn refused(record: &RunRecord) -> String {
    record
        .state
        .cancel_refused
        .as_ref()
        .map(|why| format!("; its cancel was refused: {why}"))
        .unwrap_or_default()
}

fn begin(record: &RunRecord) -> Why {
    Why {
        id: record.id.clone(),
        state: record.state.phase.word(),
        summary: String::new(),
        reason: None,
        obstacle: None,
        first_failing_rank: None,
        rank: None,
        cause: None,
        evidence: None,
        error: None,
        last_lines: Vec::new(),
        transient: None,
        next_step: None,
        waiting: None,
    }
}

fn failed(context: &Context, record: &RunRecord) -> Result<Why> {
    let ending = record.state.ending.clone().unwrap_or_default();
    let first_failing_rank = ending.first_failure.as_ref().map(|failure| failure.rank);
    let mut why = Why {
        summary: ending.to_string(),
        reason: ending.cause.map(Cause::word),
        obstacle: ending.known_obstacle().map(Obstacle::word),
        first_failing_rank,
        ..begin(record)
    };
    let told = failure::told(context, record, &ending)?;
    let is_here = !crate::runs::far::is_far(&context.history()?, &record.id)?;
    let (transient, step) = advice(&ending, record.id.short(), is_here);
    (why.transient, why.next_step) = (transient, Some(step));
    match told {
        Some(told) if told.reading.consequence_level().is_some() => {
            shows(&mut why, told, &ending, record.id.short());
        }
        Some(told) => shows_nothing(&mut why, told, &ending),
        None => {
            why.last_lines = logfiles::before_it_began(
                context.state()?,
                &record.id,
                record.state.attempt,
                &ending,
            );
        }
    }
    // Where nothing of ours spoke, the platform may have.
    if why.last_lines.is_empty() && why.evidence.is_none() {
        why.last_lines = crate::runs::far::last_words(context, &context.history()?, record);
    }
    Ok(why)
}

/// Adds the cause or the error that a log shows.
fn shows(why: &mut Why, told: Told, ending: &Ending, short: &str) {
    let Told {
        whose,
        reading,
        silent,
        ..
    } = told;
    let (owner, log) = match whose {
        LogSource::Rank(rank) => (
            format!("rank {rank}'s log"),
            format!("tow logs {short}{}", rank_option(rank)),
        ),
        LogSource::SetUp(_) => ("its log".to_owned(), format!("tow logs {short} --setup")),
    };
    if let LogSource::Rank(rank) = whose {
        why.rank = Some(rank);
    }
    if let Some(first) = silent {
        why.summary += &format!("; rank {first}'s log has no error line");
    }
    why.summary += &format!("; {owner} shows");
    // torchrun starts ranks of its own below ours.
    if let Some(inner) = reading
        .error
        .as_ref()
        .and_then(|error| error.rank)
        .filter(|inner| Some(*inner) != why.rank)
    {
        why.summary += &format!(", of the rank it calls {inner}");
    }
    if let Some(finding) = reading.finding {
        why.summary += &format!(": {}", finding.class.title());
        why.cause = Some(finding.class.word());
        why.evidence = Some(finding.evidence);
        why.transient = Some(finding.transient);
        why.next_step = Some(finding.next_step);
    } else if let Some(error) = &reading.error {
        why.summary += &format!("{}: {}", standing(error), cut(&error.message));
        why.evidence = Some(error.message.clone());
        // Memory and SIGKILL strike from outside: what the program said before is not the cause.
        let from_outside = ending.cause == Some(Cause::OutOfMemory)
            || ending
                .first_failure
                .as_ref()
                .is_some_and(|failure| failure.signal == Some(9));
        if !from_outside {
            why.transient = error.form.transient().or(why.transient);
            why.next_step = Some(step(error, &log));
        }
        if error.went_on {
            why.last_lines = reading.last_lines;
        }
    }
    why.error = reading.error;
}

/// How certain it is that an error ended the program.
const fn standing(error: &LogError) -> &'static str {
    if error.went_on {
        ", before much else, so that it may not be the cause"
    } else if error.thread {
        ", in a thread"
    } else {
        ""
    }
}

/// The next step for an error without a known cause.
fn step(error: &LogError, log: &str) -> String {
    let place = error.place.as_ref().map(towline_core::why::Place::short);
    match (error.form, place) {
        (Form::Usage, _) => format!("correct the options of the command; the whole log: {log}"),
        (Form::Syntax, Some(place)) => format!("correct {place}; the whole log: {log}"),
        (Form::Launcher, _) => format!(
            "torchrun keeps the traceback of a `main` that is decorated with `@record`; the whole \
                log: {log}"
        ),
        _ if error.report => format!("look above it for what that program said: {log}"),
        (_, Some(place)) => format!("look at {place}; the whole log: {log}"),
        _ => format!("read the whole log: {log}"),
    }
}

/// Adds the end of a log that shows no error.
fn shows_nothing(why: &mut Why, told: Told, ending: &Ending) {
    why.last_lines = told.reading.last_lines;
    if let (LogSource::Rank(rank), Some(Cause::ExitCode | Cause::Signal)) =
        (told.whose, ending.cause)
    {
        why.rank = Some(rank);
        why.summary += match (why.last_lines.is_empty(), told.missing) {
            (false, _) => "; its log has no error line and ends with",
            (true, false) => "; its log is empty",
            (true, true) => "; no log of it is on this machine",
        };
    }
}

/// A message, shortened for a sentence; the whole message follows below.
fn cut(message: &str) -> String {
    /// The longest message in a sentence.
    const MAX_MESSAGE_CHARACTERS: usize = 160;
    if message.chars().count() <= MAX_MESSAGE_CHARACTERS {
        message.to_owned()
    } else {
        message
            .chars()
            .take(MAX_MESSAGE_CHARACTERS - 1)
            .chain(['…'])
            .collect()
    }
}

fn rank_option(rank: u32) -> String {
    if rank > 0 {
        format!(" --rank {rank}")
    } else {
        String::new()
    }
}

fn text(why: &Why) -> String {
    let mut text = format!("{} {}: {}\n", why.id, why.state, why.summary);
    // A short message stands in the sentence already.
    let evidence = why
        .evidence
        .iter()
        .filter(|evidence| !why.summary.ends_with(evidence.as_str()));
    for line in evidence
        .chain(why.error.iter().flat_map(|error| &error.more))
        .chain(&why.last_lines)
    {
        text += &format!("  | {line}\n");
    }
    if let Some(place) = why.error.as_ref().and_then(|error| error.place.as_ref()) {
        let function = place
            .function
            .as_ref()
            .filter(|function| *function != "<module>")
            .map(|function| format!(" in {function}"))
            .unwrap_or_default();
        text += &format!("at {}{function}\n", place.short());
        text += &place
            .source
            .as_ref()
            .map(|source| format!("  | {source}\n"))
            .unwrap_or_default();
    }
    if let Some(last) = why.error.as_ref().and_then(|error| error.ended_as.as_ref()) {
        text += &format!("in the end: {last}\n");
    }
    match why.transient {
        Some(true) => text += "transient: trying again may help\n",
        Some(false) => text += "not transient: trying again unchanged will fail again\n",
        None => {}
    }
    if let Some(step) = &why.next_step {
        text += &format!("next: {step}\n");
    }
    text
}
