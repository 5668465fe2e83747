//! `tow logs`: shows the logs of a run, by offset, over every attempt; of a sweep, those of each run.

mod sweep;

use super::Report;
use crate::context::Context;
use crate::runs::follow::{Followed, Label, View, follow};
use crate::runs::freshen::freshen;
use crate::runs::logfiles;
use towline_core::cluster::LogSource;
use towline_core::counts::BY_INTEREST;
use towline_core::reason::Ending;
use towline_core::record::RunRecord;
use towline_core::state::RunState;
use towline_core::{Error, Result, RunId};
use towline_engine::history::Target;
use towline_wire::report::Run;

/// Show or follow the logs of a run: rank 0, every attempt.
///
/// Without a run, the latest. Of a sweep, the logs of each run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow logs @                  what the latest run wrote; of a sweep, run after run
  tow logs -f 60ce            follow it until it ends; of a sweep, all active runs at once
  tow logs @ --rank all       all ranks, each line with its rank
  tow logs -f @ --tail 20     its last 20 lines, and what comes
  tow logs @ --grep 'loss'    only lines that match
  tow logs @ --attempt 2      one attempt")]
pub(crate) struct Args {
    /// A run: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", default_value = "@", hide_default_value = true)]
    run: String,
    /// Go on until the run has ended; of a sweep, until all have, each line with its run.
    #[arg(short, long)]
    follow: bool,
    /// A rank, or `all`.
    #[arg(long, value_name = "K|all", conflicts_with = "setup")]
    rank: Option<String>,
    /// Only lines that match this regular expression.
    #[arg(long, value_name = "RE")]
    grep: Option<String>,
    /// Only the last lines of each rank's log, of the latest attempt.
    #[arg(long, value_name = "LINES", conflicts_with = "grep")]
    tail: Option<usize>,
    /// Only this attempt.
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// The set-up log of this node.
    #[arg(long, value_name = "NODE", num_args = 0..=1, default_missing_value = "0")]
    setup: Option<u32>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let record = match history.find_to_read(&args.run)? {
        Target::Run(record) => *record,
        Target::Sweep(id, runs) => return sweep::show(context, &history, args, &id, runs),
    };
    let mut records = [record];
    freshen(context, &history, &mut records)?;
    let [record] = records;
    crate::runs::far::bring_logs(context, &history, &record.id)?;
    check_attempt(args, &record)?;
    let view = view(args, &record, Label::None)?;
    let missing = if args.follow {
        None
    } else {
        missing_log(context, &record, &view)
    };
    // Where no rank has printed anything, the platform may have.
    let platform = crate::runs::far::last_words(context, &history, &record);
    let report = match follow(context, &view, record.state)? {
        Followed::Ended(state) if args.follow && state.phase.is_ended() => Report {
            code: 0,
            ..ended_report(context, &record.id, &state)
        },
        Followed::Detached => Report {
            code: 130,
            ..Report::default()
        },
        _ => missing.into_iter().fold(Report::default(), Report::hint),
    };
    Ok(platform
        .into_iter()
        .fold(report, |report, line| report.hint(format!("| {line}"))))
}

/// What to show of a run, all its attempts or the one that was asked for.
fn view(args: &Args, record: &RunRecord, label: Label) -> Result<View> {
    Ok(View {
        run: record.id.clone(),
        sources: sources(args, record)?,
        attempt: match (args.attempt, args.tail) {
            (Some(attempt), _) => attempt,
            (None, Some(_)) => record.state.attempt.max(1),
            (None, None) => 1,
        },
        one_attempt: args.attempt.is_some(),
        grep: grep(args)?,
        tail: args.tail,
        follow: args.follow,
        narrate: args.follow,
        label,
    })
}

/// Why there is no log to show. An empty log is an answer; a missing one needs a reason.
fn missing_log(context: &Context, record: &RunRecord, view: &View) -> Option<String> {
    let state = context.state().ok()?;
    let attempts = if view.one_attempt {
        view.attempt..=view.attempt
    } else {
        1..=record.state.attempt
    };
    let is_there = |attempt: u32| {
        view.sources
            .iter()
            .any(|source| state.log(&record.id, attempt, *source).exists())
    };
    if attempts.into_iter().any(is_there) {
        return None;
    }
    let (id, short) = (&record.id, record.id.short());
    Some(match record.state.phase {
        _ if record.state.attempt == 0 && !record.state.phase.is_ended() => {
            format!(
                "{id} has not begun, so it has no log yet: tow why {short}    wait for it: tow \
                    logs -f {short}"
            )
        }
        _ if record.state.attempt == 0 => {
            format!("{id} never began, so it has no log: tow why {short}")
        }
        _ if matches!(view.sources.as_slice(), [LogSource::SetUp(_)]) => {
            format!("{id} has no log of set-up there")
        }
        phase if phase.is_ended() => {
            format!("there is no log of {id} any more, or its program never began: tow why {short}")
        }
        _ => format!("{id} has written no log yet; wait for it: tow logs -f {short}"),
    })
}

/// The one run that a verb needs. For a sweep, the error lists the runs to choose from.
pub(crate) fn one_run(target: Target) -> Result<RunRecord> {
    match target {
        Target::Run(run) => Ok(*run),
        Target::Sweep(id, runs) => Err(Error::new(
            towline_core::ErrorKind::Ambiguous,
            format!("{id} is a sweep of {} runs", runs.len()),
        )
        .hint(format!(
            "name one of them: {}; `tow ps {}` lists them all",
            by_state(&runs),
            id.short()
        ))),
    }
}

/// The runs of a sweep by state, the most interesting states first: a few runs of each by name.
fn by_state(runs: &[RunRecord]) -> String {
    const NAMED_RUNS: usize = 3;
    let groups = BY_INTEREST.map(|phase| {
        let ids: Vec<&str> = runs
            .iter()
            .filter(|run| run.state.phase == phase)
            .map(|run| run.id.short())
            .collect();
        let more = if ids.len() > NAMED_RUNS {
            format!(" and {} more", ids.len() - NAMED_RUNS)
        } else {
            String::new()
        };
        if ids.is_empty() {
            String::new()
        } else {
            format!(
                "{} {}{more}",
                phase.word(),
                ids[..ids.len().min(NAMED_RUNS)].join(", ")
            )
        }
    });
    groups
        .into_iter()
        .filter(|group| !group.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

fn sources(args: &Args, record: &RunRecord) -> Result<Vec<LogSource>> {
    if let Some(node) = args.setup {
        return Ok(vec![LogSource::SetUp(node)]);
    }
    match args.rank.as_deref() {
        None => Ok(vec![LogSource::Rank(0)]),
        Some("all") => Ok((0..record.world).map(LogSource::Rank).collect()),
        Some(text) => match text.parse::<u32>() {
            Ok(rank) if rank < record.world => Ok(vec![LogSource::Rank(rank)]),
            _ => Err(
                Error::not_found(format!("{} has no rank `{text}`", record.id)).hint(format!(
                    "ranks 0 to {}, or `all`",
                    record.world.saturating_sub(1)
                )),
            ),
        },
    }
}

fn check_attempt(args: &Args, record: &RunRecord) -> Result<()> {
    match args.attempt {
        Some(attempt) if attempt == 0 || attempt > record.state.attempt => Err(Error::not_found(
            format!("{} has no attempt {attempt}", record.id),
        )
        .hint(format!("it has had {}", record.state.attempt))),
        _ => Ok(()),
    }
}

fn grep(args: &Args) -> Result<Option<regex::bytes::Regex>> {
    args.grep
        .as_deref()
        .map(|pattern| {
            regex::bytes::Regex::new(pattern).map_err(|error| {
                Error::usage(format!("--grep `{pattern}` is not a regular expression"))
                    .source_error(error)
            })
        })
        .transpose()
}

/// The description of a lost run.
pub(crate) const LOST: &str =
    "its cluster does not have it any more, and there is no record of its end";

/// The report of an ended run, with its exit code.
pub(crate) fn ended_report(context: &Context, id: &RunId, state: &RunState) -> Report {
    let ending = state.ending.clone().unwrap_or_else(Ending::success);
    let code = u8::try_from(ending.passed_code() & 0xff).unwrap_or(1);
    let word = state.phase.word();
    let lost =
        state.phase == towline_core::state::Phase::Ended(towline_core::reason::Outcome::Lost);
    let code = if lost {
        towline_core::ErrorKind::Lost.exit_code()
    } else {
        code
    };
    let mut hints = if code == 0 {
        Vec::new()
    } else {
        vec![format!("tow why {}", id.short())]
    };
    if let Ok(folder) = context.state() {
        let said = logfiles::before_it_began(folder, id, state.attempt, &ending);
        hints.splice(0..0, said.into_iter().map(|line| format!("| {line}")));
    }
    let why = if lost {
        LOST.to_owned()
    } else {
        ending.to_string()
    };
    let last_words = (code != 0).then(|| format!("{id} {word}: {why}; code {code}"));
    let answer = if context.json {
        ended_run(context, id, state)
    } else {
        None
    };
    let report = answer.map_or_else(Report::default, |run| Report::of(&run, |_| String::new()));
    Report {
        hints,
        last_words,
        code,
        ..report
    }
}

/// The run as it ended; none if the history does not have it any more.
fn ended_run(context: &Context, id: &RunId, state: &RunState) -> Option<Run> {
    let mut record = context.history().ok()?.run(id).ok()??;
    record.state = state.clone();
    Some(Run::from(&record))
}
