//! `tow query`: the same as ACT's `a query`. It copies logs to `assets/<run>/` and shows the end of
//! rank 0, the log paths and the record.

use super::{Report, ps};
use crate::context::Context;
use crate::output;
use crate::output::local_time;
use crate::runs::freshen::freshen;
use crate::runs::logfiles;
use std::path::{Path, PathBuf};
use towline_core::cluster::LogSource;
use towline_core::counts::PhaseCounts;
use towline_core::record::RunRecord;
use towline_core::time::human_millis;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{History, Target};
use towline_wire::report::query::{Queried, QueriedSweep};
use towline_wire::report::{Run, Time};

/// Fetch new logs to `assets/RUN/`, show their end and the record.
///
/// Shows the last lines of rank 0 and the paths of all logs. Of a sweep, fetches those of every run
/// and shows a table.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow query 60ce2fc7
  tow q @               of a sweep, the logs of every run
  tow q                 without a run: the list, like `tow ps`")]
pub(crate) struct Args {
    /// A run: an id, the end of one, or @ for the latest. Without one, runs are listed.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// How many lines of rank 0 to show.
    #[arg(long, default_value_t = 100, value_name = "N")]
    lines: usize,
    /// The folder for the logs.
    #[arg(long, default_value = "assets", value_name = "FOLDER")]
    to: PathBuf,
    /// Without a run: list at most this many.
    #[arg(short, long, alias = "max", value_name = "N", conflicts_with = "run")]
    limit: Option<u32>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let Some(name) = &args.run else {
        return ps::run(context, &ps::Args::everything(args.limit));
    };
    let history = context.history()?;
    let record = match history.find_to_read(name)? {
        Target::Run(record) => *record,
        Target::Sweep(id, runs) => return sweep(context, args, &history, id, runs),
    };
    let mut records = [record];
    freshen(context, &history, &mut records)?;
    let [record] = records;
    crate::runs::far::bring_logs(context, &history, &record.id)?;
    let (logs, last_of_rank_0) = fetch_logs(context, args, &record)?;
    if let Some(path) = &last_of_rank_0
        && !context.json
    {
        print_end(path, args.lines)?;
    }
    Ok(Report::of(&queried(&record, logs), text))
}

fn queried(record: &RunRecord, logs: Vec<String>) -> Queried {
    let ending = record.state.ending.as_ref();
    Queried {
        run: Run::from(record),
        result: ending
            .filter(|ending| ending.cause.is_some())
            .map(ToString::to_string),
        logs,
    }
}

/// Fetches the logs of every run that has begun.
fn sweep(
    context: &Context,
    args: &Args,
    history: &History,
    id: RunId,
    mut records: Vec<RunRecord>,
) -> Result<Report> {
    freshen(context, history, &mut records)?;
    let far = crate::runs::far::is_far(history, &records[0].id)?;
    let mut runs = Vec::new();
    for record in &records {
        let mut logs = Vec::new();
        if record.state.attempt > 0 {
            if far {
                crate::runs::far::bring_logs(context, history, &record.id)?;
            }
            (logs, _) = fetch_logs(context, args, record)?;
        }
        runs.push(queried(record, logs));
    }
    let states: PhaseCounts = records.iter().map(|run| run.state.phase).collect();
    let hint = format!("what they printed: tow logs {}", id.short());
    let answer = QueriedSweep { id, states, runs };
    Ok(Report::of(&answer, sweep_text).hint(hint))
}

fn sweep_text(answer: &QueriedSweep) -> String {
    let mut text = String::new();
    if answer.runs.iter().any(|run| !run.logs.is_empty()) {
        text += "log files:\n";
        for path in answer.runs.iter().flat_map(|run| &run.logs) {
            text += &format!("  {path}\n");
        }
    }
    text += &format!("{:<12} {}\n", "status", answer.states);
    text += &format!("{:<12} {}\n", "appID", answer.id);
    text += &format!("{:<12} {}\n\n", "appID-s", answer.id.short());
    text + &ps::table(answer.runs.iter().map(|queried| &queried.run))
}

/// Copies the new bytes of every log to `assets/RUN/`. Returns the paths, and that of rank 0's last
/// attempt.
fn fetch_logs(
    context: &Context,
    args: &Args,
    record: &RunRecord,
) -> Result<(Vec<String>, Option<PathBuf>)> {
    let folder = context.folder()?.join(&args.to).join(record.id.as_str());
    std::fs::create_dir_all(&folder)
        .map_err(|error| Error::from_io(format!("{} cannot be made", folder.display()), error))?;
    let files = logfiles::list(context.state()?, &record.id)?;
    let mut paths = Vec::new();
    let mut last_of_rank_0 = None;
    for file in &files {
        let (path, truncated) = logfiles::copy_new_bytes(file, &folder)?;
        if truncated {
            output::status(&format!(
                "the job truncated {}; it was copied again",
                path.display()
            ));
        }
        if file.source == LogSource::Rank(0) {
            last_of_rank_0 = Some(path.clone());
        }
        paths.push(path.display().to_string());
    }
    Ok((paths, last_of_rank_0))
}

fn print_end(path: &Path, lines: usize) -> Result<()> {
    let tail = logfiles::tail_lines(path, lines).unwrap_or_default();
    output::data(&tail)?;
    if !tail.is_empty() && !tail.ends_with(b"\n") {
        output::data(b"\n")?;
    }
    Ok(())
}

/// The record in the words of ACT's page, which people and scripts of theirs look for; `tow show`
/// has ours.
fn text(answer: &Queried) -> String {
    let run = &answer.run;
    let mut text = String::new();
    if !answer.logs.is_empty() {
        text += "log files:\n";
        for path in &answer.logs {
            text += &format!("  {path}\n");
        }
    }
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text += &format!("{name:<12} {value}\n");
        }
    };
    let at = |time: Option<Time>| {
        time.map(|time| local_time::shown(time.0))
            .unwrap_or_default()
    };
    line("status", &ps::state_text(run));
    line("appID", run.id.as_str());
    line("appID-s", run.id.short());
    line("cluster", &run.cluster);
    line("cmd", &run.command);
    line("num_gpu", &run.gpus.to_string());
    line("attempt", &run.attempt.to_string());
    line("created", &at(Some(run.created)));
    line("start_time", &at(run.started));
    line("end_time", &at(run.ended));
    let now = Time(towline_host::clock::now());
    let between = |from: Time, to: Time| human_millis(to.0.since(from.0));
    let elapsed = run
        .started
        .map(|started| between(started, run.ended.unwrap_or(now)));
    line("elapsedTime", &elapsed.unwrap_or_default());
    let queued = run
        .started
        .filter(|_| run.attempt == 1)
        .map(|started| between(run.created, started));
    line("queuedTime", &queued.unwrap_or_default());
    line("portal_url", run.url.as_deref().unwrap_or_default());
    line("result", answer.result.as_deref().unwrap_or_default());
    text
}
