//! `tow show`: shows the record of a run.

use super::{Report, logs, ps};
use crate::context::Context;
use crate::output::local_time;
use crate::runs::freshen::freshen;
use crate::runs::logfiles;
use towline_core::state::Native;
use towline_core::{Result, RunId};
use towline_wire::report::show::Shown;
use towline_wire::report::{Attempt, Run, Time};

/// Show all about a run: its job, place, attempts and events.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow show @
  tow show 60ce --json | jq .attempts")]
pub(crate) struct Args {
    /// A run: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", default_value = "@", hide_default_value = true)]
    run: String,
    /// Show its events, one per line.
    #[arg(long)]
    events: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let mut records = [logs::one_run(history.find_to_read(&args.run)?)?];
    freshen(context, &history, &mut records)?;
    let [record] = records;
    let submission = history.submission_of(&record.id)?;
    let resolved = submission
        .as_ref()
        .map(|submission| &submission.plan.resolved);
    let frozen = resolved.and_then(|resolved| resolved.code.as_ref());
    let state = context.state()?;
    let there = crate::runs::far::places(context, &history, &record)?;
    let shown = Shown {
        run: Run::from(&record),
        folder: there.as_ref().map_or_else(
            || state.run(&record.id).display().to_string(),
            |(folder, _)| folder.clone(),
        ),
        workdir: resolved.map(|resolved| resolved.workdir.clone()),
        code: frozen.and_then(|_| {
            there.as_ref().map_or_else(
                || Some(state.code(&record.id).display().to_string()),
                |(_, code)| code.clone(),
            )
        }),
        native: record.state.native.clone(),
        snapshot: frozen.and_then(|code| code.snapshot.clone()),
        dirty: resolved
            .and_then(|resolved| resolved.git.as_ref())
            .and_then(|git| git.dirty),
        commit: resolved
            .and_then(|resolved| resolved.git.as_ref())
            .map(|git| git.commit.clone()),
        secrets: resolved
            .map(|resolved| resolved.secrets.clone())
            .unwrap_or_default(),
        job: submission
            .as_ref()
            .map(|submission| submission.plan.job.clone()),
        attempts: history
            .attempts(record.sequence)?
            .iter()
            .map(Attempt::from)
            .collect(),
        logs: logfiles::list(state, &record.id)?
            .into_iter()
            .map(|file| file.path.display().to_string())
            .collect(),
        events: history.events(&record.id)?,
    };
    let text = if args.events { events } else { text };
    Ok(Report::of(&shown, text))
}

fn events(shown: &Shown) -> String {
    let mut text = String::new();
    for recorded in &shown.events {
        text += &format!(
            "{}  {}\n",
            recorded.at,
            serde_json::to_string(&recorded.event).unwrap_or_default()
        );
    }
    text
}

fn text(shown: &Shown) -> String {
    let mut page = Page::default();
    asked(&mut page, shown);
    times(&mut page, &shown.run);
    code(&mut page, shown);
    page.line("secrets", &shown.secrets.join(", "));
    page.line("folder", &shown.folder);
    for attempt in &shown.attempts {
        let detail = attempt.detail.as_deref().unwrap_or("not ended");
        page.line(
            &format!("attempt {}", attempt.attempt),
            &format!(
                "{} {detail}",
                attempt.started.map_or_else(|| "not started".to_owned(), at)
            ),
        );
    }
    shown.logs.iter().for_each(|log| page.line("log", log));
    page.0
}

/// Lines of a name and a value.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Adds a line, unless the value is empty.
    fn line(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0 += &format!("{name:<11} {value}\n");
        }
    }

    fn maybe(&mut self, name: &str, value: Option<&str>) {
        self.line(name, value.unwrap_or_default());
    }
}

/// What was asked, of which cluster, and how it stands.
fn asked(page: &mut Page, shown: &Shown) {
    let run = &shown.run;
    page.line("id", run.id.as_str());
    page.line("name", &run.name);
    page.line("state", &ps::state_text(run));
    page.maybe("reason", run.detail.as_deref());
    page.maybe("goes on", run.cancel_refused.as_deref());
    page.line("command", &run.command);
    page.line("cluster", &format!("{} ({} tier)", run.cluster, run.tier));
    if let Some(native) = &shown.native {
        native_job(page, native, run.ended.is_some());
    }
    page.line(
        "size",
        &format!(
            "{} rank(s) on {} node(s), {} GPU(s)",
            run.ranks, run.nodes, run.gpus
        ),
    );
    page.maybe("experiment", run.experiment.as_deref());
    page.line("tags", &run.tags.join(", "));
    page.line("values", &run.parameters.to_string());
    page.maybe("sweep", run.sweep.as_ref().map(RunId::as_str));
    page.maybe("resubmits", run.resubmits.as_ref().map(RunId::as_str));
}

/// Adds the cluster's own description of the job.
fn native_job(page: &mut Page, native: &Native, is_ended: bool) {
    let reason = if native.reason.is_empty() || native.reason == "None" {
        String::new()
    } else {
        format!(" ({})", native.reason)
    };
    // Once it has ended, the word is that of the last look before.
    let word = if is_ended {
        String::new()
    } else {
        format!("{}{reason} ", native.word)
    };
    page.line(
        "job",
        format!("{} {word}{}", native.id, native.hosts.join(",")).trim_end(),
    );
    if let Some(url) = &native.url {
        page.line("page", url);
    }
}

fn times(page: &mut Page, run: &Run) {
    page.line("created", &at(run.created));
    page.line("started", &run.started.map(at).unwrap_or_default());
    page.line("ended", &run.ended.map(at).unwrap_or_default());
}

fn at(time: Time) -> String {
    local_time::shown(time.0)
}

fn code(page: &mut Page, shown: &Shown) {
    let workdir = if shown.snapshot.is_some() {
        "from"
    } else {
        "starts in"
    };
    page.maybe(workdir, shown.workdir.as_deref());
    page.maybe("code", shown.code.as_deref());
    page.maybe("snapshot", shown.snapshot.as_deref());
    let dirty = if shown.dirty == Some(true) {
        " and changes on top"
    } else {
        ""
    };
    let commit = shown.commit.as_deref();
    page.line(
        "commit",
        &commit
            .map(|commit| format!("{commit}{dirty}"))
            .unwrap_or_default(),
    );
}
