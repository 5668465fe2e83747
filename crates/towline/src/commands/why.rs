//! `tow why`: why a run waits, why it failed, what to do next.

mod sweep;

use super::{Report, logs};
use crate::context::Context;
use crate::failure::{self, Told};
use crate::freshen::freshen;
use crate::logfiles;
use serde::Serialize;
use towline_backends::local::client;
use towline_core::cluster::LogSource;
use towline_core::reason::{Cause, Ending, Outcome};
use towline_core::record::{Freshness, RunRecord};
use towline_core::state::Phase;
use towline_core::why::{Form, LogError};
use towline_core::{Error, Result};
use towline_engine::history::{History, Target};
use towline_wire::daemon::{Explanation, Reply, Request};

/// Tell why a run is waiting or why it failed, and what to do next.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow why @
  tow why 60ce2fc7 --json")]
pub(crate) struct Args {
    #[arg(value_name = "RUN", default_value = "@", hide_default_value = true)]
    run: String,
}

/// How long a far cluster may take to explain.
const EXPLAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Serialize, Default)]
struct Why {
    id: String,
    state: &'static str,
    /// One sentence.
    summary: String,
    reason: Option<&'static str>,
    first_failing_rank: Option<u32>,
    /// The rank whose log shows the cause or the error.
    rank: Option<u32>,
    /// What the logs show: `missing_module`, `gpu_out_of_memory`, …
    cause: Option<&'static str>,
    evidence: Option<String>,
    /// The error in the log's own words, whether or not its cause is known.
    error: Option<LogError>,
    /// The end of a log that shows no error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_lines: Vec<String>,
    /// Whether trying again unchanged can help.
    transient: Option<bool>,
    next_step: Option<String>,
    waiting: Option<Explanation>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let target = history.find_to_read(&args.run)?;
    if let Target::Sweep(id, mut runs) = target {
        freshen(context, &history, &mut runs)?;
        return Ok(sweep::explain(&id, &runs));
    }
    let mut records = [logs::one_run(target)?];
    freshen(context, &history, &mut records)?;
    let [record] = records;
    let has_logs = record.state.attempt > 0
        && (record.state.phase.is_ended() || record.state.held_until.is_some());
    // What is known without them is worth telling.
    let no_logs = if has_logs {
        crate::far::bring_logs(context, &history, &record.id).err()
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
            summary: "it is being ended, as was asked for".into(),
            ..begin(&record)
        },
        Phase::Running => Why {
            summary: format!("it is running{}", refused(&record)),
            next_step: Some(format!("tow logs -f {}", record.id.short())),
            ..begin(&record)
        },
        _ => waiting(context, &record)?,
    };
    let mut report = Report::new(page(&why), &why);
    if let Some(error) = no_logs {
        report = report.hint(format!("its logs could not be looked at: {error}"));
        report = error.hints().iter().fold(report, Report::hint);
    }
    if let Freshness::Stale { since, why } = &record.freshness {
        report = report.hint(format!(
            "this is as of {}: {} cannot be asked now: {why}",
            crate::local_time::shown(*since),
            record.cluster
        ));
    }
    Ok(report)
}

/// The cluster cannot be reached, or what the run needs there.
fn unsent(record: &RunRecord, why: &str) -> Report {
    let summary = format!(
        "it is written down, and is sent once `{}` can be used: {why}",
        record.cluster
    );
    let why = Why {
        summary,
        next_step: Some("`tow doctor` tries it again and says more".into()),
        ..begin(record)
    };
    Report::new(page(&why), &why)
}

/// How it is done again. What another tool submitted can only be submitted anew.
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

/// That it was to end, and why it does not.
fn refused(record: &RunRecord) -> String {
    record
        .state
        .cancel_refused
        .as_ref()
        .map(|why| format!("; its abort was refused: {why}"))
        .unwrap_or_default()
}

fn begin(record: &RunRecord) -> Why {
    Why {
        id: record.id.to_string(),
        state: record.state.phase.word(),
        ..Why::default()
    }
}

fn held(context: &Context, record: &RunRecord) -> Result<Why> {
    let mut why = failed(context, record)?;
    why.state = "failed, held";
    why.next_step = Some(format!(
        "look around: tow ssh {0}    let it go: tow abort {0}",
        record.id.short()
    ));
    Ok(why)
}

fn waiting(context: &Context, record: &RunRecord) -> Result<Why> {
    let ask = || Request::Explain {
        run: record.id.clone(),
    };
    let is_far = crate::far::is_far(&context.history()?, &record.id)?;
    let answer = if is_far {
        crate::far::ask_cluster(context, &record.cluster, &ask, EXPLAIN_TIMEOUT)
    } else {
        client::ask(context.state()?, &ask).map(|(reply, _)| reply)
    };
    let explanation = match answer {
        Ok(Reply::Explained(explanation)) => explanation,
        Ok(Reply::FarExplained(explained)) => return Ok(far(record, explained)),
        // What was heard of it before is still worth telling.
        Err(error) if is_far && error.kind() == towline_core::ErrorKind::Unreachable => {
            let next_step = error.hints().first().cloned();
            return Ok(Why {
                summary: format!("what it waits for is not known: {error}"),
                next_step,
                ..begin(record)
            });
        }
        Ok(_) => return Err(Error::bug("the daemon gave an answer to another question")),
        Err(error) if error.kind() == towline_core::ErrorKind::NotFound => {
            return Ok(Why {
                summary: "it has just ended".into(),
                ..begin(record)
            });
        }
        Err(error) => return Err(error),
    };
    let mut summary = explanation.text.clone();
    if !explanation.held_by.is_empty() {
        let holders: Vec<&str> = explanation
            .held_by
            .iter()
            .take(8)
            .map(towline_core::RunId::short)
            .collect();
        summary += &format!("; held by {}", holders.join(", "));
    }
    if record.state.attempt > 0
        && let Some(ending) = &record.state.ending
    {
        summary += &format!(
            "; attempt {} was over because: {ending}",
            record.state.attempt
        );
    }
    let next_step = (!explanation.waits_for.is_empty())
        .then(|| "`tow nodes` shows who has what; `--tier premium` goes before others".to_owned());
    Ok(Why {
        summary,
        next_step,
        waiting: Some(explanation),
        ..begin(record)
    })
}

/// What a far scheduler says of it.
fn far(record: &RunRecord, explained: towline_core::cluster::Explanation) -> Why {
    let mut summary = explained.text;
    if let Some(native) = &explained.native {
        let reason = if native.reason.is_empty() {
            String::new()
        } else {
            format!(", {}", native.reason)
        };
        summary += &format!(" (job {}: {}{reason})", native.id, native.word);
    }
    let waiting = Explanation {
        ahead: 0,
        waits_for: Vec::new(),
        held_by: Vec::new(),
        text: summary.clone(),
    };
    let next_step = explained.next.or_else(|| {
        explained
            .forever
            .then(|| format!("as it is, it never starts: tow abort {}", record.id.short()))
    });
    Why {
        summary,
        next_step,
        waiting: Some(waiting),
        ..begin(record)
    }
}

fn failed(context: &Context, record: &RunRecord) -> Result<Why> {
    let ending = record.state.ending.clone().unwrap_or_default();
    let first_failing_rank = ending.first_failure.as_ref().map(|failure| failure.rank);
    let mut why = Why {
        summary: ending.to_string(),
        reason: ending.cause.map(Cause::word),
        first_failing_rank,
        ..begin(record)
    };
    let told = failure::told(context, record, &ending)?;
    let is_here = !crate::far::is_far(&context.history()?, &record.id)?;
    let (transient, step) = advice(&ending, record.id.short(), is_here);
    (why.transient, why.next_step) = (transient, Some(step));
    match told {
        Some(told) if told.reading.consequence_level().is_some() => {
            shows(&mut why, told, &ending, record.id.short())
        }
        Some(told) => shows_nothing(&mut why, told, &ending),
        None => {
            why.last_lines = logfiles::before_it_began(
                context.state()?,
                &record.id,
                record.state.attempt,
                &ending,
            )
        }
    }
    // Where nothing of ours spoke, the platform may have.
    if why.last_lines.is_empty() && why.evidence.is_none() {
        why.last_lines = crate::far::last_words(context, &context.history()?, record);
    }
    Ok(why)
}

/// The log shows a cause, or at least an error.
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

/// How sure it is that an error ended the program, where it is not.
const fn standing(error: &LogError) -> &'static str {
    if error.went_on {
        ", before much else, so that it may not be the cause"
    } else if error.thread {
        ", in a thread"
    } else {
        ""
    }
}

/// What to do about an error whose cause no rule knows.
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

/// The log shows no error: its end is all there is.
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

/// A message in a sentence; all of it is shown below.
fn cut(message: &str) -> String {
    /// Characters of a message that a sentence holds.
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

/// What to do when the logs tell nothing more.
fn advice(ending: &Ending, short: &str, is_here: bool) -> (Option<bool>, String) {
    let again = format!("tow resubmit {short}");
    match ending.cause {
        Some(Cause::TimeLimit) => (
            Some(false),
            "give it more with `--time`, or go on from \
            checkpoints with `retry: {when: [time_limit]}`"
                .into(),
        ),
        Some(Cause::OutOfMemory) => (
            Some(false),
            "ask for more with `--memory`, or use less: \
            smaller batches, fewer data loader workers"
                .into(),
        ),
        Some(Cause::NodeFailed) => (
            Some(true),
            format!(
                "try again: {again}; `retry: {{when: \
            [node_failed]}}` does it by itself"
            ),
        ),
        Some(Cause::Preempted) => (
            Some(true),
            "it comes back by itself; `--tier standard` is not \
            preempted here"
                .into(),
        ),
        Some(Cause::Rejected) => {
            let hints: Vec<&str> = ending.hints().collect();
            (
                Some(false),
                if hints.is_empty() {
                    format!(
                        "change what was refused; then \
                {again}"
                    )
                } else {
                    format!("{}; then {again}", hints.join("; "))
                },
            )
        }
        Some(Cause::SetUp) => (
            Some(false),
            format!(
                "see what set-up said: tow logs {short} \
            --setup"
            ),
        ),
        Some(Cause::Data) => (
            None,
            format!(
                "`tow doctor` tries every store; what was done is in \
            tow logs {short} --setup; then {again}"
            ),
        ),
        Some(Cause::ImagePull) => (
            Some(false),
            image_advice(ending.detail.as_deref().unwrap_or_default(), short),
        ),
        Some(Cause::NotStarted) if ending.detail.as_deref().is_some_and(is_no_room) => (
            Some(true),
            format!(
                "make room on the disk named above (`tow prune` removes old runs \
                here); then {again}"
            ),
        ),
        Some(Cause::NotStarted)
            if ending
                .detail
                .as_deref()
                .is_some_and(|detail| detail.contains("laid out")) =>
        {
            (
                None,
                "`tow snapshot check` looks for damage; `tow resubmit --latest-code` takes the \
                code anew"
                    .into(),
            )
        }
        Some(Cause::NotStarted)
            if ending
                .detail
                .as_deref()
                .is_some_and(|detail| detail.contains("`stage`")) =>
        {
            (
                Some(false),
                "name a folder as `stage` of the cluster that its login host and its \
                nodes share"
                    .into(),
            )
        }
        Some(Cause::NotStarted) if is_here => (
            Some(false),
            "check the program's name and that it \
            is executable; PATH is the submitting shell's"
                .into(),
        ),
        Some(Cause::NotStarted) => (
            Some(false),
            format!(
                "what is named above is not there on the \
            node: a program, a folder or a store; then {again}"
            ),
        ),
        Some(Cause::Signal)
            if ending
                .first_failure
                .as_ref()
                .and_then(|failure| failure.signal)
                == Some(9) =>
        {
            (
                None,
                "SIGKILL comes from outside: most often the kernel, out of memory. See `dmesg`, \
                or set `--memory` so that it is told apart"
                    .into(),
            )
        }
        _ => {
            let failure = ending.first_failure.as_ref();
            let meaning = failure
                .and_then(|failure| failure.exit_code)
                .map(meaning)
                .unwrap_or_default();
            (
                None,
                format!(
                    "{meaning}read the end of its log: tow logs \
                {short}{}",
                    failure
                        .map(|failure| rank_option(failure.rank))
                        .unwrap_or_default()
                ),
            )
        }
    }
}

/// By the system's words, and by our own where code does not fit.
fn is_no_room(detail: &str) -> bool {
    detail.contains("No space left") || detail.contains("are free at")
}

/// A runtime that knows no such image is told from one that cannot start any.
fn image_advice(said: &str, short: &str) -> String {
    const OF_THE_NAME: [&str; 8] = [
        "short-name",
        "manifest unknown",
        "not found",
        "no such image",
        "denied",
        "unauthorized",
        "invalid reference",
        "does not exist",
    ];
    let said = said.to_lowercase();
    let first = if OF_THE_NAME.iter().any(|words| said.contains(words)) {
        "check the image's name, and your login at its registry"
    } else {
        "the container runtime could not start it: try it by hand, `podman run --rm IMAGE true`"
    };
    format!("{first}; what the runtime said is in tow logs {short} --setup")
}

/// What shells mean by a code.
fn meaning(code: i32) -> String {
    match code {
        126 => "code 126 means that a program was found and could not be run: check that it is \
            executable; "
            .to_owned(),
        127 => "code 127 means that a command was not found; ".to_owned(),
        137 => "code 137 means that something below it was ended by SIGKILL, most often because \
            memory ran out; "
            .to_owned(),
        129..=192 => format!(
            "code {code} means that something below it was ended by \
            {}; ",
            towline_core::reason::signal_name(code - 128)
        ),
        _ => String::new(),
    }
}

fn page(why: &Why) -> String {
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
