//! `tow ps`: lists runs, newest first.

mod fold;
mod remote;
mod watch;

use super::Report;
use crate::context::Context;
use crate::output::columns;
use crate::output::table::Table;
use crate::output::{Paint, state_paint};
use crate::runs::freshen::freshen;
use towline_core::reason::{Cause, Outcome};
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::suggest::did_you_mean;
use towline_core::time::{Moment, human_millis};
use towline_core::{Error, Result};
use towline_engine::history::{Filter, History, Target};
use towline_wire::report::{Run, Runs};

/// List runs, newest first; a sweep is one row.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  tow ps                               the newest fifty
  tow ps --state queued,running        what is still to come
  tow ps --experiment hoi --tag vitl
  tow ps 60ce2fc7                      the runs of one sweep
  tow ps --watch                       the table, live, until Ctrl-C
  tow ps --remote --user alice         what the cluster itself knows of alice
  tow ps --json | jq '.runs[0].id'")]
pub(crate) struct Args {
    /// Only the runs of this sweep, or this run.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Only these states: queued, running, succeeded, failed, cancelled, lost.
    #[arg(short, long, value_delimiter = ',')]
    state: Vec<String>,
    /// Only this cluster.
    #[arg(short, long)]
    cluster: Option<String>,
    /// Only this experiment.
    #[arg(short, long)]
    experiment: Option<String>,
    /// Only runs with this tag.
    #[arg(short, long)]
    tag: Option<String>,
    /// Show at most this many [default: 50; with --remote all].
    #[arg(short, long, value_name = "N", value_parser = super::count, allow_negative_numbers = true)]
    limit: Option<u32>,
    /// Show all runs.
    #[arg(short, long)]
    all: bool,
    /// List what a far cluster itself knows, including other users' runs and those of other
    /// machines; with --all also ended ones.
    #[arg(long, conflicts_with_all = ["run", "experiment", "tag"])]
    remote: bool,
    /// With --remote: only users whose name on the cluster contains this.
    #[arg(short, long, requires = "remote")]
    user: Option<String>,
    /// Keep the table up to date until Ctrl-C.
    #[arg(short, long, conflicts_with = "remote")]
    watch: bool,
}

impl Args {
    pub(crate) fn only(mut self, state: &str) -> Self {
        self.state = vec![state.to_owned()];
        self
    }
    /// The arguments of `tow query` without a run.
    pub(crate) fn everything(limit: Option<u32>) -> Self {
        // Each run for itself, as those who are used to it read it.
        let limit =
            Some(limit.unwrap_or_else(|| u32::try_from(DEFAULT_SHOWN_RUNS).unwrap_or(u32::MAX)));
        Self {
            run: None,
            state: Vec::new(),
            cluster: None,
            experiment: None,
            tag: None,
            limit,
            all: false,
            remote: false,
            user: None,
            watch: false,
        }
    }
}

/// The widest name in the table. A longer one is cut; `--json` and `tow show` have it whole.
const LONGEST_NAME: usize = 32;
/// How many runs are shown by default.
const DEFAULT_SHOWN_RUNS: usize = 50;

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    if args.remote {
        return remote::list(context, args);
    }
    if args.watch {
        return watch::watch(context, args);
    }
    once(context, args)
}

/// The runs of this moment.
fn once(context: &Context, args: &Args) -> Result<Report> {
    if let Some(name) = &args.cluster {
        context.check_cluster(name)?;
    }
    let filter = filter(context, args)?;
    let Some(history) = context.maybe_history()? else {
        let report = Report::of(&Runs::default(), |_| String::new());
        let report = report.hint("no run yet; begin with: tow run echo hello");
        return Ok(with_workspaces(context, report));
    };
    // A reader who asks for so many runs, or for the runs of one sweep, gets them one by one.
    let folds = !context.json && !args.all && args.limit.is_none() && args.run.is_none();
    let report = if folds {
        fold::list(context, &history, &filter)?
    } else {
        one_by_one(context, &history, &filter, args)?
    };
    Ok(with_workspaces(context, report))
}

fn one_by_one(
    context: &Context,
    history: &History,
    filter: &Filter,
    args: &Args,
) -> Result<Report> {
    let mut records = history.list(filter)?;
    freshen(context, history, &mut records)?;
    records.retain(|record| still_fits(filter, record));
    let is_cut = filter.limit.is_some_and(|limit| records.len() >= limit);
    if is_cut {
        records.truncate(limit_of(args));
    }
    let answer: Runs = records.iter().map(Run::from).collect();
    let mut report = Report::of(&answer, text);
    if answer.runs.is_empty() {
        report = report.hint("no run fits");
    } else if is_cut {
        report = report.hint(cut_hint(answer.runs.len()));
    }
    Ok(with_stale(report, answer.runs.iter()))
}

/// Whether a run fits that may have ended meanwhile.
fn still_fits(filter: &Filter, record: &RunRecord) -> bool {
    filter.phases.is_empty() || filter.phases.contains(&record.state.phase)
}

fn cut_hint(shown: usize) -> String {
    format!("{shown} shown; more with --limit N or --all")
}

/// Adds a hint for each cluster of which what is shown is old.
fn with_stale<'r>(mut report: Report, runs: impl Iterator<Item = &'r Run>) -> Report {
    let mut seen: Vec<&str> = Vec::new();
    for run in runs {
        let (Some(since), Some(why)) = (run.stale_since, &run.stale) else {
            continue;
        };
        if !seen.contains(&run.cluster.as_str()) {
            seen.push(&run.cluster);
            report = report.hint(format!(
                "`?`: {} was last heard of at {}: {why}",
                run.cluster,
                crate::output::local_time::shown(since.0)
            ));
        }
    }
    report
}

/// Adds hints about failing backups of workspaces.
fn with_workspaces(context: &Context, report: Report) -> Report {
    let Ok(state) = context.state() else {
        return report;
    };
    crate::scratch::see_to_autos(state);
    let failing = crate::scratch::failing(state);
    failing.into_iter().fold(report, |report, (name, failing)| {
        report.hint(format!(
            "backups of workspace `{name}` fail since {}: {} (`tow scratch ls`)",
            failing.since, failing.why
        ))
    })
}

fn limit_of(args: &Args) -> usize {
    args.limit
        .map_or(DEFAULT_SHOWN_RUNS, |limit| limit as usize)
}

fn filter(context: &Context, args: &Args) -> Result<Filter> {
    let phases = args
        .state
        .iter()
        .flat_map(|word| parse_state(word))
        .collect::<Result<Vec<_>>>()?;
    let (mut submission, mut run) = (None, None);
    if let Some(text) = &args.run {
        match context.history()?.find_to_read(text)? {
            Target::Sweep(id, _) => submission = Some(id),
            Target::Run(record) => run = Some(record.id),
        }
    }
    // One more than is shown tells whether there are more.
    let limit = (!args.all && args.run.is_none()).then_some(limit_of(args).saturating_add(1));
    Ok(Filter {
        phases,
        cluster: args.cluster.clone(),
        experiment: args.experiment.clone(),
        tag: args.tag.clone(),
        submission,
        run,
        limit,
    })
}

fn parse_state(word: &str) -> Vec<Result<Phase>> {
    match word {
        "active" => vec![
            Ok(Phase::Queued),
            Ok(Phase::Running),
            Ok(Phase::Submitting),
            Ok(Phase::Staging),
            Ok(Phase::Drafted),
        ],
        "ended" => Phase::ALL
            .into_iter()
            .filter(|phase| phase.is_ended())
            .map(Ok)
            .collect(),
        _ => vec![Phase::from_word(&word.to_ascii_lowercase()).ok_or_else(|| {
            let words = Phase::ALL.map(Phase::word);
            let suggestion = if word.is_empty() {
                None
            } else {
                did_you_mean(word, words)
            };
            Error::usage(format!("`{word}` is not a state")).hint(
                suggestion
                    .unwrap_or_else(|| format!("states: {}, active, ended", words.join(", "))),
            )
        })],
    }
}

fn new_table() -> Table {
    Table::new(&[
        "ID", "NAME", "STATE", "TRY", "GPUS", "CLUSTER", "AGE", "TOOK", "VALUES", "COMMAND",
    ])
}

fn text(answer: &Runs) -> String {
    table(&answer.runs)
}

/// The table of runs; nothing if there is none.
pub(crate) fn table<'r>(runs: impl IntoIterator<Item = &'r Run>) -> String {
    let mut runs = runs.into_iter().peekable();
    if runs.peek().is_none() {
        return String::new();
    }
    let now = towline_host::clock::now();
    let mut table = new_table();
    for run in runs {
        table.row(row(run, now));
    }
    table.render()
}

fn row(run: &Run, now: Moment) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let took = run
        .started
        .filter(|_| run.state != Phase::Queued.word())
        .map(|started| human_millis(run.ended.map_or(now, |ended| ended.0).since(started.0)))
        .unwrap_or_default();
    let above = |least: u32, number: u32| {
        if number > least {
            number.to_string()
        } else {
            String::new()
        }
    };
    vec![
        (run.id.short().to_owned(), Paint::Bold),
        plain(columns::cut(&run.name, LONGEST_NAME)),
        (state_text(run), state_paint(run.state)),
        plain(above(1, run.attempt)),
        plain(above(0, run.gpus)),
        plain(fold::elsewhere(&run.cluster)),
        (human_millis(now.since(run.created.0)), Paint::Quiet),
        plain(took),
        plain(run.parameters.to_string()),
        (run.command.clone(), Paint::Quiet),
    ]
}

/// The longest reason in the table, in characters.
const REASON_LENGTH: usize = 40;

/// Slurm's word for a reason; a sentence is cut to fit the table.
fn short_reason(reason: &str) -> String {
    let first = reason.split(',').next().unwrap_or(reason).trim();
    let mut short = String::new();
    for word in first.split_whitespace() {
        if !short.is_empty() && short.len() + word.len() >= REASON_LENGTH {
            return format!("{short} …");
        }
        short += if short.is_empty() { "" } else { " " };
        short += word;
    }
    short
}

/// The state with what a reader should know beside it.
pub(crate) fn state_text(run: &Run) -> String {
    let word = run.state;
    let mark = if run.stale_since.is_some() { "?" } else { "" };
    if !run.is_ended() && run.cancel_requested {
        return format!("{word}{mark}, cancelling");
    }
    if !mark.is_empty() {
        return format!("{word}{mark}");
    }
    if run.held_until.is_some() {
        return "failed, held".to_owned();
    }
    if run.on_hold {
        return format!("{word}, on hold");
    }
    if !run.after.is_empty() {
        let before: Vec<String> = run.after.iter().map(ToString::to_string).collect();
        return format!("{word} (after {})", before.join(", "));
    }
    let native_state = run.native_state.as_deref();
    match (Phase::from_word(word), &run.native_reason, run.reason) {
        // Why a far cluster keeps it waiting, in its own word.
        (Some(Phase::Queued), Some(reason), _) => format!("{word} ({})", short_reason(reason)),
        // It has its nodes, and none of its processes gets any time there.
        (Some(Phase::Running), ..) if matches!(native_state, Some("SUSPENDED" | "STOPPED")) => {
            format!("{word} (suspended)")
        }
        (Some(Phase::Ended(Outcome::Cancelled)), _, Some(reason))
            if reason == Cause::Dependency.word() =>
        {
            format!("{word} ({reason})")
        }
        (Some(Phase::Ended(Outcome::Failed)), _, Some(reason)) => match run.exit_code {
            Some(code) if reason == Cause::ExitCode.word() => format!("failed ({code})"),
            _ => format!("failed ({})", reason.replace('_', " ")),
        },
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::short_reason;

    #[test]
    fn a_reason_is_a_word_or_the_begin_of_a_sentence() {
        let down = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher \
            priority partitions";
        for (reason, short) in [
            ("Resources", "Resources"),
            ("ReqNodeNotAvail, UnavailableNodes:c1", "ReqNodeNotAvail"),
            (down, "Nodes required for job are DOWN"),
            ("job requeued in held state", "job requeued in held state"),
            (
                "launch failure limit exceeded requeued held",
                "launch failure limit exceeded requeued …",
            ),
        ] {
            assert_eq!(short_reason(reason), short);
        }
    }
}
