//! `tow show` of a sweep: one record of what its runs share, and a table of them.

use super::{Page, Report, commit, event_line, ps, times};
use crate::context::Context;
use crate::runs::freshen::freshen;
use towline_core::counts::PhaseCounts;
use towline_core::record::RunRecord;
use towline_core::sweep::Axis;
use towline_core::time::Moment;
use towline_core::{Result, RunId};
use towline_engine::history::History;
use towline_wire::report::show::ShownSweep;
use towline_wire::report::{Run, Time};

/// How many values of an axis are shown.
const SHOWN_VALUES: usize = 12;

pub(super) fn show(
    context: &Context,
    history: &History,
    id: RunId,
    mut runs: Vec<RunRecord>,
    with_events: bool,
) -> Result<Report> {
    freshen(context, history, &mut runs)?;
    let mut events = Vec::new();
    if with_events {
        for run in &runs {
            events.extend(history.events(&run.id)?);
        }
    }
    let shown = ShownSweep {
        events,
        ..record(history, id, &runs)?
    };
    let axes = shown.job.iter().flat_map(|job| &job.sweep.0);
    let values: Vec<String> = axes.map(axis_text).collect();
    Ok(if with_events {
        Report::of(&shown, |shown| {
            super::super::lines(&shown.events, |event| {
                format!("{}  {}", event.run.short(), event_line(event))
            })
        })
    } else {
        Report::of(&shown, |shown| text(shown, &values))
    })
}

/// What the runs share. The first one stands for all where they do not differ.
fn record(history: &History, id: RunId, runs: &[RunRecord]) -> Result<ShownSweep> {
    let first = &runs[0];
    let submission = history.submission(&id)?;
    let plan = submission.as_ref().map(|submission| &submission.plan);
    let resolved = plan.map(|plan| &plan.resolved);
    let git = resolved.and_then(|resolved| resolved.git.as_ref());
    let ends: Option<Vec<Moment>> = runs.iter().map(|run| run.ended).collect();
    Ok(ShownSweep {
        id,
        name: plan
            .and_then(|plan| plan.job.name.clone())
            .unwrap_or_else(|| first.name.clone()),
        states: runs
            .iter()
            .map(|run| run.state.phase)
            .collect::<PhaseCounts>(),
        command: resolved.map_or_else(
            || first.command.clone(),
            |resolved| resolved.program.display(),
        ),
        cluster: first.cluster.clone(),
        tier: first.tier.clone(),
        experiment: first.experiment.clone(),
        tags: first.tags.clone(),
        gpus: first.gpus,
        nodes: first.nodes,
        ranks: first.world,
        created: Time(first.created),
        started: runs.iter().filter_map(|run| run.started).min().map(Time),
        ended: ends.and_then(|ends| ends.into_iter().max()).map(Time),
        resubmits: first.resubmits.clone(),
        workdir: resolved.map(|resolved| resolved.workdir.clone()),
        snapshot: resolved
            .and_then(|resolved| resolved.code.as_ref())
            .and_then(|code| code.snapshot.clone()),
        commit: git.map(|git| git.commit.clone()),
        dirty: git.and_then(|git| git.dirty),
        secrets: resolved
            .map(|resolved| resolved.secrets.iter().map(ToString::to_string).collect())
            .unwrap_or_default(),
        job: plan.map(|plan| plan.job.clone()),
        agent: plan.and_then(|plan| plan.agent.clone()),
        runs: runs.iter().map(Run::from).collect(),
        events: Vec::new(),
    })
}

fn text(shown: &ShownSweep, values: &[String]) -> String {
    let mut page = Page::default();
    page.line("sweep", shown.id.as_str());
    page.line("name", &shown.name);
    page.line("runs", &format!("{}: {}", shown.runs.len(), shown.states));
    page.line("command", &shown.command);
    for axis in values {
        page.line("values", axis);
    }
    page.line(
        "cluster",
        &format!("{} ({} tier)", shown.cluster, shown.tier),
    );
    page.line(
        "size",
        &format!(
            "each {} rank(s) on {} node(s), {} GPU(s)",
            shown.ranks, shown.nodes, shown.gpus
        ),
    );
    page.maybe("experiment", shown.experiment.as_deref());
    page.line("tags", &shown.tags.join(", "));
    page.maybe("agent", shown.agent.as_deref());
    page.maybe("resubmits", shown.resubmits.as_ref().map(RunId::as_str));
    times(&mut page, shown.created, shown.started, shown.ended);
    let workdir = if shown.snapshot.is_some() {
        "from"
    } else {
        "starts in"
    };
    page.maybe(workdir, shown.workdir.as_deref());
    page.maybe("snapshot", shown.snapshot.as_deref());
    commit(&mut page, shown.commit.as_deref(), shown.dirty);
    page.line("secrets", &shown.secrets.join(", "));
    format!("{}\n{}", page.0, ps::table(&shown.runs))
}

/// `lr = 0.1, 0.01`, and `(bs, acc) = (8, 4), (16, 2)` for values that move together.
fn axis_text(axis: &Axis) -> String {
    let together = |names: &[String]| match names {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let shown = axis.choices.iter().take(SHOWN_VALUES);
    let shown: Vec<String> = shown.map(|choice| together(choice)).collect();
    let more = if axis.choices.len() > SHOWN_VALUES {
        format!(", … {} in all", axis.choices.len())
    } else {
        String::new()
    };
    format!("{} = {}{more}", together(&axis.names), shown.join(", "))
}
