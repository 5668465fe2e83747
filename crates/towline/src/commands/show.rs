//! `tow show`: the record of a run.

use super::{Report, logs, ps};
use crate::context::Context;
use crate::freshen::freshen;
use crate::local_time::shown_text;
use crate::logfiles;
use serde::Serialize;
use towline_core::Result;
use towline_core::event::Recorded;
use towline_core::job::Job;
use towline_wire::report::{Attempt, Run};

/// Show everything known of a run: what was asked, where it runs, its attempts and events.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow show @
  tow show 60ce --json | jq .attempts")]
pub(crate) struct Args {
    #[arg(value_name = "RUN", default_value = "@", hide_default_value = true)]
    run: String,
    /// Its events, one a line.
    #[arg(long)]
    events: bool,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    run: Run,
    folder: String,
    /// Where it was submitted.
    workdir: Option<String>,
    /// The tree it runs in, where it has one of its own.
    code: Option<String>,
    snapshot: Option<String>,
    commit: Option<String>,
    /// Tracked files differed from the commit.
    dirty: Option<bool>,
    secrets: Vec<String>,
    job: Option<Job>,
    /// The cluster's own words for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<Box<towline_core::state::Native>>,
    attempts: Vec<Attempt>,
    logs: Vec<String>,
    events: Vec<Recorded>,
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
    let there = crate::far::places(context, &history, &record)?;
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
    let text = if args.events {
        events(&shown)
    } else {
        page(&shown, &ps::state_text(&record))
    };
    Ok(Report::new(text, &shown))
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

fn page(shown: &Shown, state: &str) -> String {
    let run = &shown.run;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text += &format!("{name:<11} {value}\n");
        }
    };
    line("id", &run.id);
    line("name", &run.name);
    line("state", state);
    line("reason", run.detail.as_deref().unwrap_or_default());
    line("goes on", run.cancel_refused.as_deref().unwrap_or_default());
    line("command", &run.command);
    line("cluster", &format!("{} ({} tier)", run.cluster, run.tier));
    if let Some(native) = &shown.native {
        let reason = if native.reason.is_empty() || native.reason == "None" {
            String::new()
        } else {
            format!(" ({})", native.reason)
        };
        // Once it has ended, the word is that of the last look before.
        let word = if run.ended.is_some() {
            String::new()
        } else {
            format!("{}{reason} ", native.word)
        };
        line(
            "job",
            format!("{} {word}{}", native.id, native.hosts.join(",")).trim_end(),
        );
        if let Some(url) = &native.url {
            line("page", url);
        }
    }
    line(
        "size",
        &format!(
            "{} rank(s) on {} node(s), {} GPU(s)",
            run.ranks, run.nodes, run.gpus
        ),
    );
    line("experiment", run.experiment.as_deref().unwrap_or_default());
    line("tags", &run.tags.join(", "));
    line(
        "values",
        &run.parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join(" "),
    );
    line("sweep", run.sweep.as_deref().unwrap_or_default());
    line("resubmits", run.resubmits.as_deref().unwrap_or_default());
    line("created", &shown_text(&run.created));
    line(
        "started",
        &run.started.as_deref().map(shown_text).unwrap_or_default(),
    );
    line(
        "ended",
        &run.ended.as_deref().map(shown_text).unwrap_or_default(),
    );
    line(
        if shown.snapshot.is_some() {
            "from"
        } else {
            "starts in"
        },
        shown.workdir.as_deref().unwrap_or_default(),
    );
    line("code", shown.code.as_deref().unwrap_or_default());
    line("snapshot", shown.snapshot.as_deref().unwrap_or_default());
    let dirty = if shown.dirty == Some(true) {
        " and changes on top"
    } else {
        ""
    };
    line(
        "commit",
        &shown
            .commit
            .as_deref()
            .map(|commit| format!("{commit}{dirty}"))
            .unwrap_or_default(),
    );
    line("secrets", &shown.secrets.join(", "));
    line("folder", &shown.folder);
    for attempt in &shown.attempts {
        let detail = attempt.detail.as_deref().unwrap_or("not ended");
        line(
            &format!("attempt {}", attempt.attempt),
            &format!(
                "{} {detail}",
                attempt
                    .started
                    .as_deref()
                    .map_or_else(|| "not started".to_owned(), shown_text)
            ),
        );
    }
    shown.logs.iter().for_each(|log| line("log", log));
    text
}
