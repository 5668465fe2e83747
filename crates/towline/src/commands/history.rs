//! `tow history`: lists former submissions, to load and edit.

use super::Report;
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use towline_core::time::human_millis;
use towline_core::{Error, Result};

/// List former submissions; with a run, print its job file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow history
  tow history @ > job.yaml       load it, edit it,
  tow submit -f job.yaml         submit it
  tow submit --from @ -n 2       or change it on the way")]
pub(crate) struct Args {
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Show at most this many.
    #[arg(short, long, default_value_t = 30, value_name = "N")]
    limit: usize,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let Some(text) = &args.run else {
        return list(context, args.limit);
    };
    let history = context.history()?;
    let target = history.find_to_read(text)?;
    let submission = history
        .submission_of(&target.runs()[0].id)?
        .ok_or_else(|| Error::not_found("its submission is not in the history"))?;
    let json = serde_json::to_value(&submission.plan.job).unwrap_or_default();
    Ok(Report {
        text: towline_core::yaml::write(&json),
        json: Some(json),
        ..Report::default()
    })
}

fn list(context: &Context, limit: usize) -> Result<Report> {
    let Some(history) = context.maybe_history()? else {
        return Ok(Report::new("", &serde_json::json!({ "submissions": [] }))
            .hint("nothing was submitted yet"));
    };
    let now = towline_host::clock::now();
    let mut table = Table::new(&["ID", "NAME", "RUNS", "CLUSTER", "AGE", "COMMAND"]);
    let mut rows = Vec::new();
    for (id, created) in history.submissions(limit)? {
        let Some(submission) = history.submission(&id)? else {
            continue;
        };
        let runs = history.runs_of(&id)?;
        let plan = &submission.plan;
        let name = plan
            .job
            .name
            .clone()
            .unwrap_or_else(|| plan.resolved.program.default_name());
        let plain = |text: String| (text, Paint::Plain);
        table.row(vec![
            (id.short().to_owned(), Paint::Bold),
            plain(name.clone()),
            plain(runs.len().to_string()),
            plain(plan.cluster.clone()),
            (human_millis(now.since(created)), Paint::Quiet),
            (plan.resolved.program.display(), Paint::Quiet),
        ]);
        rows.push(serde_json::json!({ "id": id, "name": name, "cluster": plan.cluster, "created": created.to_string(), "runs": runs.len(), "job": plan.job }));
    }
    Ok(Report::new(
        table.render(),
        &serde_json::json!({ "submissions": rows }),
    ))
}
