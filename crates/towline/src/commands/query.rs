//! `tow query`: the same as ACT's `a query`. It copies logs to `assets/<run>/` and shows the end of
//! rank 0, the log paths and the record.

use super::{Report, logs, ps};
use crate::context::Context;
use crate::output;
use crate::output::local_time;
use crate::runs::freshen::freshen;
use crate::runs::logfiles;
use serde::Serialize;
use std::path::{Path, PathBuf};
use towline_core::cluster::LogSource;
use towline_core::record::RunRecord;
use towline_core::time::{Moment, human_millis};
use towline_core::{Error, Result};
use towline_wire::report::Run;

/// Fetch new log bytes to `assets/RUN/`, show the end of rank 0, the log paths and the record.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow query 60ce2fc7
  tow q @
  tow q                 without a run: the list, like `tow ps`")]
pub(crate) struct Args {
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

#[derive(Serialize)]
struct Queried {
    #[serde(flatten)]
    run: Run,
    logs: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let Some(text) = &args.run else {
        return ps::run(context, &ps::Args::everything(args.limit));
    };
    let history = context.history()?;
    let mut records = [logs::one_run(history.find_to_read(text)?)?];
    freshen(context, &history, &mut records)?;
    let [record] = records;
    crate::runs::far::bring_logs(context, &history, &record.id)?;
    let (paths, last_of_rank_0) = fetch_logs(context, args, &record)?;
    if let Some(path) = &last_of_rank_0
        && !context.json
    {
        print_end(path, args.lines)?;
    }
    let mut text = String::new();
    if !paths.is_empty() {
        text += "log files:\n";
        for path in &paths {
            text += &format!("  {path}\n");
        }
    }
    text += &page(&record);
    Ok(Report::new(
        text,
        &Queried {
            run: Run::from(&record),
            logs: paths,
        },
    ))
}

/// Copies the new bytes of every log to `assets/RUN/`. Returns the paths, and that of rank 0's last
/// attempt.
fn fetch_logs(
    context: &Context,
    args: &Args,
    record: &RunRecord,
) -> Result<(Vec<String>, Option<PathBuf>)> {
    let folder = context.folder()?.join(&args.to).join(record.id.as_str());
    std::fs::create_dir_all(&folder).map_err(|error| {
        Error::refused(format!("{} cannot be made", folder.display())).source_error(error)
    })?;
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

/// The record with the field names of ACT, which people and their scripts look for; `tow show` has
/// ours.
fn page(record: &RunRecord) -> String {
    let now = towline_host::clock::now();
    let elapsed = record
        .started
        .map(|started| human_millis(record.ended.unwrap_or(now).since(started)));
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text += &format!("{name:<12} {value}\n");
        }
    };
    let at = |moment: Option<Moment>| moment.map(local_time::shown).unwrap_or_default();
    line("status", &ps::state_text(record));
    line("appID", record.id.as_str());
    line("appID-s", record.id.short());
    line("cluster", &record.cluster);
    line("cmd", &record.command);
    line("num_gpu", &record.gpus.to_string());
    line("attempt", &record.state.attempt.to_string());
    line("created", &at(Some(record.created)));
    line("start_time", &at(record.started));
    line("end_time", &at(record.ended));
    line("elapsedTime", &elapsed.unwrap_or_default());
    let queued = record
        .started
        .filter(|_| record.state.attempt == 1)
        .map(|started| human_millis(started.since(record.created)));
    line("queuedTime", &queued.unwrap_or_default());
    line(
        "portal_url",
        record
            .state
            .native
            .as_ref()
            .and_then(|native| native.url.as_deref())
            .unwrap_or_default(),
    );
    if let Some(ending) = record
        .state
        .ending
        .as_ref()
        .filter(|ending| ending.cause.is_some())
    {
        line("result", &ending.to_string());
    }
    text
}
