//! `tow why`: why a run waits, why it failed, what to do next.

use super::{Report, logs};
use crate::context::Context;
use crate::freshen::freshen;
use crate::logfiles::{self, TAIL};
use serde::Serialize;
use towline_backends::local::client;
use towline_core::backend::LogSource;
use towline_core::reason::{Cause, Ending, Outcome};
use towline_core::record::{Freshness, RunRecord};
use towline_core::state::Phase;
use towline_core::why::{Finding, classify, root_cause};
use towline_core::{Error, Result};
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
const EXPLAINS: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Serialize, Default)]
struct Why {
    id: String,
    state: &'static str,
    /// One sentence.
    summary: String,
    reason: Option<&'static str>,
    first_failing_rank: Option<u32>,
    /// What the logs show: `missing_module`, `gpu_out_of_memory`, …
    cause: Option<&'static str>,
    evidence: Option<String>,
    /// The end of the set-up's log, where that failed and shows no cause that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_lines: Vec<String>,
    /// Whether trying again unchanged can help.
    transient: Option<bool>,
    next_step: Option<String>,
    waiting: Option<Explanation>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let mut records = [logs::one_run(history.find_to_read(&args.run)?)?];
    freshen(context, &history, &mut records)?;
    let [record] = records;
    if record.state.phase.is_ended() || record.state.held_until.is_some() {
        crate::far::bring_logs(context, &history, &record.id)?;
    }
    let why = match record.state.phase {
        Phase::Ended(Outcome::Succeeded) => Why { summary: "it ended well".into(), ..begin(&record) },
        Phase::Ended(Outcome::Cancelled) => {
            Why { summary: "it was cancelled by the user".into(), next_step: Some(format!("tow resubmit {}", record.id.short())), ..begin(&record) }
        }
        Phase::Ended(Outcome::Lost) => {
            Why { summary: format!("it is lost: {}", logs::LOST), next_step: Some(format!("tow resubmit {}", record.id.short())), ..begin(&record) }
        }
        Phase::Ended(Outcome::Failed) => failed(context, &record)?,
        Phase::Running if record.state.held_until.is_some() => held(context, &record)?,
        Phase::Running if record.state.cancel_requested => Why { summary: "it is being ended, as was asked for".into(), ..begin(&record) },
        Phase::Running => {
            Why { summary: format!("it is running{}", refused(&record)), next_step: Some(format!("tow logs -f {}", record.id.short())), ..begin(&record) }
        }
        _ => waiting(context, &record)?,
    };
    let mut report = Report::new(page(&why), &why);
    if let Freshness::Stale { since, why } = &record.freshness {
        report = report.hint(format!("this is as of {}: {} cannot be asked now: {why}", crate::local_time::shown(*since), record.cluster));
    }
    Ok(report)
}

/// That it was to end, and why it does not.
fn refused(record: &RunRecord) -> String {
    record.state.cancel_refused.as_ref().map(|why| format!("; its abort was refused: {why}")).unwrap_or_default()
}

fn begin(record: &RunRecord) -> Why {
    Why { id: record.id.to_string(), state: record.state.phase.word(), ..Why::default() }
}

fn held(context: &Context, record: &RunRecord) -> Result<Why> {
    let mut why = failed(context, record)?;
    why.state = "failed, held";
    why.next_step = Some(format!("look around: tow ssh {0}    let it go: tow abort {0}", record.id.short()));
    Ok(why)
}

fn waiting(context: &Context, record: &RunRecord) -> Result<Why> {
    let ask = || Request::Explain { run: record.id.clone() };
    let is_far = crate::far::is_far(&context.history()?, &record.id)?;
    let answer =
        if is_far { crate::far::ask_cluster(context, &record.cluster, &ask, EXPLAINS) } else { client::ask(context.state()?, &ask).map(|(reply, _)| reply) };
    let explanation = match answer {
        Ok(Reply::Explained(explanation)) => explanation,
        Ok(Reply::FarExplained(explained)) => return Ok(far(record, explained)),
        // What was heard of it before is still worth telling.
        Err(error) if is_far && error.kind() == towline_core::ErrorKind::Unreachable => {
            let next_step = error.hints().first().cloned();
            return Ok(Why { summary: format!("what it waits for is not known: {error}"), next_step, ..begin(record) });
        }
        Ok(_) => return Err(Error::bug("the daemon gave an answer to another question")),
        Err(error) if error.kind() == towline_core::ErrorKind::NotFound => return Ok(Why { summary: "it has just ended".into(), ..begin(record) }),
        Err(error) => return Err(error),
    };
    let mut summary = explanation.text.clone();
    if !explanation.held_by.is_empty() {
        let holders: Vec<&str> = explanation.held_by.iter().take(8).map(towline_core::RunId::short).collect();
        summary += &format!("; held by {}", holders.join(", "));
    }
    if record.state.attempt > 0
        && let Some(ending) = &record.state.ending
    {
        summary += &format!("; attempt {} was over because: {ending}", record.state.attempt);
    }
    let next_step = (!explanation.waits_for.is_empty()).then(|| "`tow nodes` shows who has what; `--tier premium` goes before others".to_owned());
    Ok(Why { summary, next_step, waiting: Some(explanation), ..begin(record) })
}

/// What a far scheduler says of it.
fn far(record: &RunRecord, explained: towline_wire::site::Explained) -> Why {
    let mut summary = explained.text;
    if let Some(native) = &explained.native {
        let reason = if native.reason.is_empty() { String::new() } else { format!(", {}", native.reason) };
        summary += &format!(" (job {}: {}{reason})", native.id, native.word);
    }
    let waiting = Explanation { ahead: 0, waits_for: Vec::new(), held_by: Vec::new(), text: summary.clone() };
    let next_step = explained.next.or_else(|| explained.forever.then(|| format!("as it is, it never starts: tow abort {}", record.id.short())));
    Why { summary, next_step, waiting: Some(waiting), ..begin(record) }
}

fn failed(context: &Context, record: &RunRecord) -> Result<Why> {
    let ending = record.state.ending.clone().unwrap_or_default();
    let finding = finding(context, record, &ending)?;
    let first_failing_rank = ending.first_failure.as_ref().map(|failure| failure.rank);
    let short = record.id.short();
    let mut why = Why { summary: ending.to_string(), reason: ending.cause.map(Cause::word), first_failing_rank, ..begin(record) };
    if let Some((rank, finding)) = finding {
        let whose = if ending.cause == Some(Cause::SetUp) { "its".to_owned() } else { format!("rank {rank}'s") };
        why.summary += &format!("; {whose} log shows: {}", finding.class.title());
        why.cause = Some(finding.class.word());
        why.evidence = Some(finding.evidence);
        why.transient = Some(finding.transient);
        why.next_step = Some(finding.next_step);
        return Ok(why);
    }
    why.last_lines = logfiles::before_it_began(context.state()?, &record.id, record.state.attempt, &ending);
    let (transient, step) = advice(&ending, short, !crate::far::is_far(&context.history()?, &record.id)?);
    why.transient = transient;
    why.next_step = Some(step);
    Ok(why)
}

/// What to do when the logs tell nothing more.
fn advice(ending: &Ending, short: &str, is_here: bool) -> (Option<bool>, String) {
    let again = format!("tow resubmit {short}");
    match ending.cause {
        Some(Cause::TimeLimit) => (Some(false), "give it more with `--time`, or go on from checkpoints with `retry: {when: [time_limit]}`".into()),
        Some(Cause::OutOfMemory) => (Some(false), "ask for more with `--memory`, or use less: smaller batches, fewer data loader workers".into()),
        Some(Cause::NodeFailed) => (Some(true), format!("try again: {again}; `retry: {{when: [node_failed]}}` does it by itself")),
        Some(Cause::Preempted) => (Some(true), "it comes back by itself; `--tier standard` is not preempted here".into()),
        Some(Cause::SetUp) => (Some(false), format!("see what set-up said: tow logs {short} --setup")),
        Some(Cause::Data) => (None, format!("`tow doctor` tries every store; what was done is in tow logs {short} --setup; then {again}")),
        Some(Cause::ImagePull) => (Some(false), image_advice(ending.detail.as_deref().unwrap_or_default(), short)),
        Some(Cause::NotStarted) if ending.detail.as_deref().is_some_and(|detail| detail.contains("No space left")) => {
            (Some(true), format!("the disk of the node was full; try again: {again}"))
        }
        Some(Cause::NotStarted) if ending.detail.as_deref().is_some_and(|detail| detail.contains("laid out")) => {
            (None, "`tow snapshot check` looks for damage; `tow resubmit --latest-code` takes the code anew".into())
        }
        Some(Cause::NotStarted) if ending.detail.as_deref().is_some_and(|detail| detail.contains("`stage`")) => {
            (Some(false), "name a folder as `stage` of the cluster that its login host and its nodes share".into())
        }
        Some(Cause::NotStarted) if is_here => (Some(false), "check the program's name and that it is executable; PATH is the submitting shell's".into()),
        Some(Cause::NotStarted) => (Some(false), format!("what is named above is not there on the node: a program, a folder or a store; then {again}")),
        Some(Cause::Signal) if ending.first_failure.as_ref().and_then(|failure| failure.signal) == Some(9) => {
            (None, "SIGKILL comes from outside: most often the kernel, out of memory. See `dmesg`, or set `--memory` so that it is told apart".into())
        }
        _ => {
            let rank = ending.first_failure.as_ref().map(|failure| failure.rank).filter(|rank| *rank > 0).map(|rank| format!(" --rank {rank}"));
            (None, format!("read the end of its log: tow logs {short}{}", rank.unwrap_or_default()))
        }
    }
}

/// A runtime that knows no such image is told from one that cannot start any.
fn image_advice(said: &str, short: &str) -> String {
    const OF_THE_NAME: [&str; 8] =
        ["short-name", "manifest unknown", "not found", "no such image", "denied", "unauthorized", "invalid reference", "does not exist"];
    let said = said.to_lowercase();
    let first = if OF_THE_NAME.iter().any(|words| said.contains(words)) {
        "check the image's name, and your login at its registry"
    } else {
        "the container runtime could not start it: try it by hand, `podman run --rm IMAGE true`"
    };
    format!("{first}; what the runtime said is in tow logs {short} --setup")
}

/// The cause as the logs show it: the first failing rank's, unless it only followed another.
fn finding(context: &Context, record: &RunRecord, ending: &Ending) -> Result<Option<(u32, Finding)>> {
    let state = context.state()?;
    let attempt = record.state.attempt;
    if ending.cause == Some(Cause::SetUp) {
        let found = (0..record.nodes)
            .find_map(|node| classify(&logfiles::tail_bytes(&state.log(&record.id, attempt, LogSource::SetUp(node)), TAIL)).map(|finding| (node, finding)));
        return Ok(found);
    }
    if !matches!(ending.cause, Some(Cause::ExitCode | Cause::Signal | Cause::OutOfMemory)) {
        return Ok(None);
    }
    let first = ending.first_failure.as_ref().map_or(0, |failure| failure.rank);
    // The order in which they ended is not known beyond the first.
    let ranks = std::iter::once(first).chain((0..record.world).filter(|rank| *rank != first)).take(256);
    let findings: Vec<(u32, Finding)> = ranks
        .filter_map(|rank| classify(&logfiles::tail_bytes(&state.log(&record.id, attempt, LogSource::Rank(rank)), TAIL)).map(|finding| (rank, finding)))
        .collect();
    Ok(root_cause(&findings).cloned())
}

fn page(why: &Why) -> String {
    let mut text = format!("{} {}: {}\n", why.id, why.state, why.summary);
    for line in why.evidence.iter().chain(&why.last_lines) {
        text += &format!("  | {line}\n");
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
