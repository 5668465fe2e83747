//! `tow ps`: runs, newest first.

use super::Report;
use crate::context::Context;
use crate::freshen::freshen;
use crate::output::{Paint, state_paint};
use crate::table::Table;
use towline_core::record::{Freshness, RunRecord};
use towline_core::state::Phase;
use towline_core::suggest::did_you_mean;
use towline_core::time::{Moment, human_millis};
use towline_core::{Error, Result};
use towline_engine::history::{Filter, Target};
use towline_wire::report::{Run, Runs};

/// List runs, newest first.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  tow ps                               the newest fifty
  tow ps --state queued,running        what is still to come
  tow ps --experiment hoi --tag vitl
  tow ps 60ce2fc7                      the runs of one sweep
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
    /// At most this many.
    #[arg(short, long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// All of them.
    #[arg(short, long)]
    all: bool,
}

impl Args {
    pub(crate) fn only(mut self, state: &str) -> Self {
        self.state = vec![state.to_owned()];
        self
    }
    /// `tow query` without a run.
    pub(crate) const fn everything() -> Self {
        Self { run: None, state: Vec::new(), cluster: None, experiment: None, tag: None, limit: 50, all: false }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let filter = filter(context, args)?;
    let Some(history) = context.maybe_history()? else {
        return Ok(Report::new("", &Runs { runs: Vec::new() }).hint("no run yet; begin with: tow run echo hello"));
    };
    let mut records = history.list(&filter)?;
    freshen(context, &history, &mut records)?;
    // What ended meanwhile may not fit any more.
    records.retain(|record| filter.phases.is_empty() || filter.phases.contains(&record.state.phase));
    let more = filter.limit.is_some_and(|limit| records.len() >= limit);
    if more {
        records.truncate(args.limit);
    }
    let runs = Runs { runs: records.iter().map(Run::from).collect() };
    let mut report = Report::new(table(&records, towline_host::clock::now()), &runs);
    if records.is_empty() {
        report.text.clear();
        report = report.hint("no run fits");
    } else if more {
        report = report.hint(format!("{} shown; more with --limit N or --all", records.len()));
    }
    Ok(report)
}

fn filter(context: &Context, args: &Args) -> Result<Filter> {
    let phases = args.state.iter().flat_map(|word| parse_state(word)).collect::<Result<Vec<_>>>()?;
    let (mut submission, mut run) = (None, None);
    if let Some(text) = &args.run {
        match context.history()?.find_to_read(text)? {
            Target::Sweep(id, _) => submission = Some(id),
            Target::Run(record) => run = Some(record.id),
        }
    }
    // One more than is shown tells whether there are more.
    let limit = (!args.all && args.run.is_none()).then_some(args.limit + 1);
    Ok(Filter { phases, cluster: args.cluster.clone(), experiment: args.experiment.clone(), tag: args.tag.clone(), submission, run, limit })
}

fn parse_state(word: &str) -> Vec<Result<Phase>> {
    match word {
        "active" => vec![Ok(Phase::Queued), Ok(Phase::Running), Ok(Phase::Submitting), Ok(Phase::Staging)],
        "ended" => Phase::ALL.into_iter().filter(|phase| phase.is_ended()).map(Ok).collect(),
        _ => vec![Phase::from_word(&word.to_ascii_lowercase()).ok_or_else(|| {
            let words = Phase::ALL.map(Phase::word);
            Error::usage(format!("`{word}` is not a state"))
                .hint(did_you_mean(word, words).unwrap_or_else(|| format!("states: {}, active, ended", words.join(", "))))
        })],
    }
}

/// The table of runs.
pub(crate) fn table(records: &[RunRecord], now: Moment) -> String {
    let mut table = Table::new(&["ID", "NAME", "STATE", "TRY", "GPUS", "CLUSTER", "AGE", "TOOK", "VALUES", "COMMAND"]);
    for record in records {
        table.row(row(record, now));
    }
    table.render()
}

fn row(record: &RunRecord, now: Moment) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let state = &record.state;
    let word = state.phase.word();
    let took =
        record.started.filter(|_| state.phase != Phase::Queued).map(|started| human_millis(record.ended.unwrap_or(now).since(started))).unwrap_or_default();
    let values: Vec<String> = record.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        (record.id.short().to_owned(), Paint::Bold),
        plain(record.name.clone()),
        (state_text(record), state_paint(word)),
        plain(if state.attempt > 1 { state.attempt.to_string() } else { String::new() }),
        plain(if record.gpus > 0 { record.gpus.to_string() } else { String::new() }),
        plain(if record.cluster == "local" { String::new() } else { record.cluster.clone() }),
        (human_millis(now.since(record.created)), Paint::Quiet),
        plain(took),
        plain(values.join(" ")),
        (record.command.clone(), Paint::Quiet),
    ]
}

/// The state with what a reader should know beside it.
pub(crate) fn state_text(record: &RunRecord) -> String {
    let state = &record.state;
    let word = state.phase.word();
    if let Freshness::Stale { .. } = &record.freshness {
        return format!("{word}?");
    }
    if !state.phase.is_ended() && state.cancel_requested {
        return format!("{word}, cancelling");
    }
    if state.held_until.is_some() {
        return "failed, held".to_owned();
    }
    match &state.ending {
        Some(ending) if state.phase == Phase::Ended(towline_core::reason::Outcome::Failed) => match (ending.cause, ending.exit_code) {
            (Some(towline_core::reason::Cause::ExitCode), Some(code)) => format!("failed ({code})"),
            (Some(cause), _) => format!("failed ({})", cause.word().replace('_', " ")),
            _ => word.to_owned(),
        },
        _ => word.to_owned(),
    }
}
