//! `tow history`: lists former submissions, to load and edit.

use super::Report;
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use towline_core::job::Job;
use towline_core::time::human_millis;
use towline_core::{Error, Result};
use towline_wire::report::Time;
use towline_wire::report::history::{Submission, Submissions};

/// List former submissions; with a run, print its job file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow history
  tow history @ > job.yaml       load it, edit it,
  tow submit -f job.yaml         submit it
  tow submit --from @ -n 2       or change it on the way")]
pub(crate) struct Args {
    /// The run whose job file to print.
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
    Ok(Report::of(&submission.plan.job, job_file))
}

/// The job as YAML.
fn job_file(job: &Job) -> String {
    towline_core::yaml::write(&serde_json::to_value(job).unwrap_or_default())
}

fn list(context: &Context, limit: usize) -> Result<Report> {
    let mut answer = Submissions::default();
    let Some(history) = context.maybe_history()? else {
        return Ok(Report::of(&answer, |_| String::new()).hint("nothing was submitted yet"));
    };
    for (id, created) in history.submissions(limit)? {
        let Some(submission) = history.submission(&id)? else {
            continue;
        };
        let plan = submission.plan;
        let program = &plan.resolved.program;
        answer.submissions.push(Submission {
            name: plan
                .job
                .name
                .clone()
                .unwrap_or_else(|| program.default_name()),
            cluster: plan.cluster,
            created: Time(created),
            runs: history.runs_of(&id)?.len(),
            command: program.display(),
            job: plan.job,
            id,
        });
    }
    Ok(Report::of(&answer, text))
}

fn text(answer: &Submissions) -> String {
    let now = towline_host::clock::now();
    let mut table = Table::new(&["ID", "NAME", "RUNS", "CLUSTER", "AGE", "COMMAND"]);
    for submission in &answer.submissions {
        let plain = |text: &str| (text.to_owned(), Paint::Plain);
        let age = human_millis(now.since(submission.created.0));
        table.row(vec![
            (submission.id.short().to_owned(), Paint::Bold),
            plain(&submission.name),
            plain(&submission.runs.to_string()),
            plain(&submission.cluster),
            (age, Paint::Quiet),
            (submission.command.clone(), Paint::Quiet),
        ]);
    }
    table.render()
}
