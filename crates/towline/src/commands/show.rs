//! `tow show`: shows the record of a run, or that of a sweep with its runs.

mod sweep;

use super::{Report, ps};
use crate::context::Context;
use crate::output::local_time;
use crate::runs::freshen::freshen;
use crate::runs::logfiles;
use towline_core::event::Recorded;
use towline_core::state::Native;
use towline_core::{Result, RunId};
use towline_engine::history::Target;
use towline_wire::report::show::Shown;
use towline_wire::report::{Attempt, Run, Time};

/// Show all about a run: its job, place, attempts and events.
///
/// Of a sweep, what its runs share, and a table of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow show @
  tow show 60ce --events      what happened, one line each
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
    let record = match history.find_to_read(&args.run)? {
        Target::Run(record) => *record,
        Target::Sweep(id, runs) => {
            return sweep::show(context, &history, id, runs, args.events);
        }
    };
    let mut records = [record];
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
            .map(|resolved| resolved.secrets.iter().map(ToString::to_string).collect())
            .unwrap_or_default(),
        job: submission
            .as_ref()
            .map(|submission| submission.plan.job.clone()),
        agent: submission
            .as_ref()
            .and_then(|submission| submission.plan.agent.clone()),
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
    Ok(if args.events {
        Report::of(&shown, |shown| super::lines(&shown.events, event_line))
    } else {
        Report::of(&shown, text)
    })
}

fn event_line(recorded: &Recorded) -> String {
    format!(
        "{}  {}",
        recorded.at,
        serde_json::to_string(&recorded.event).unwrap_or_default()
    )
}

fn text(shown: &Shown) -> String {
    let mut page = Page::default();
    asked(&mut page, shown);
    let run = &shown.run;
    times(&mut page, run.created, run.started, run.ended);
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
    page.maybe("agent", shown.agent.as_deref());
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

fn times(page: &mut Page, created: Time, started: Option<Time>, ended: Option<Time>) {
    page.line("created", &at(created));
    page.line("started", &started.map(at).unwrap_or_default());
    page.line("ended", &ended.map(at).unwrap_or_default());
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
    commit(page, shown.commit.as_deref(), shown.dirty);
}

fn commit(page: &mut Page, commit: Option<&str>, dirty: Option<bool>) {
    let dirty = if dirty == Some(true) {
        " and changes on top"
    } else {
        ""
    };
    page.line(
        "commit",
        &commit
            .map(|commit| format!("{commit}{dirty}"))
            .unwrap_or_default(),
    );
}
