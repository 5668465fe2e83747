//! `tow ps` for people: a sweep is one row, which says how many of its runs are in which state.

use super::{DEFAULT_SHOWN_RUNS, LONGEST_NAME, Report, cut_hint, new_table, row, still_fits};
use super::{freshen, with_stale};
use crate::context::Context;
use crate::output::columns;
use crate::output::{Paint, state_paint};
use crate::runs::freshen::freshen_each;
use towline_core::Result;
use towline_core::record::{Freshness, RunRecord};
use towline_core::state::Phase;
use towline_core::time::{Moment, human_millis};
use towline_engine::history::{Entry, Filter, History, SweepEntry};
use towline_wire::report::Run;

/// The newest runs and sweeps that fit.
pub(super) fn list(context: &Context, history: &History, filter: &Filter) -> Result<Report> {
    let mut entries = history.entries(filter)?;
    // One more than is shown tells whether there are more.
    let is_cut = entries.len() > DEFAULT_SHOWN_RUNS;
    entries.truncate(DEFAULT_SHOWN_RUNS);
    let entries = fresh(context, history, filter, entries)?;
    let mut report = Report {
        text: text(&entries),
        ..Report::default()
    };
    if entries.is_empty() {
        report = report.hint("no run fits");
    }
    if entries.iter().any(|entry| matches!(entry, Entry::Sweep(_))) {
        report = report.hint("the runs of a sweep: tow ps ID; each run for itself: --all");
    }
    if is_cut {
        report = report.hint(cut_hint(entries.len()));
    }
    let stale: Vec<Run> = entries
        .iter()
        .flat_map(active)
        .filter(|run| run.freshness != Freshness::Fresh)
        .map(Run::from)
        .collect();
    Ok(with_stale(report, stale.iter()))
}

/// The runs of an entry that may have changed since the history was written.
fn active(entry: &Entry) -> &[RunRecord] {
    match entry {
        Entry::Run(run) => std::slice::from_ref(run),
        Entry::Sweep(sweep) => &sweep.active,
    }
}

/// Brings entries up to date. An entry of which nothing fits any more is left out.
fn fresh(
    context: &Context,
    history: &History,
    filter: &Filter,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>> {
    let uncounted = |sweep: &mut SweepEntry| {
        for run in &sweep.active {
            sweep.counts.remove(run.state.phase, 1);
        }
    };
    for entry in &mut entries {
        if let Entry::Sweep(sweep) = entry {
            uncounted(sweep);
        }
    }
    let runs = entries.iter_mut().flat_map(|entry| match entry {
        Entry::Run(run) => std::slice::from_mut(run.as_mut()),
        Entry::Sweep(sweep) => &mut sweep.active,
    });
    freshen_each(context, history, runs)?;
    let mut fresh = Vec::new();
    for entry in entries {
        match entry {
            Entry::Run(run) if still_fits(filter, &run) => fresh.push(Entry::Run(run)),
            Entry::Run(_) => {}
            Entry::Sweep(mut sweep) => {
                count_again(&mut sweep, filter);
                match sweep.counts.total() {
                    0 => {}
                    1 => fresh.extend(only_run(context, history, filter, &sweep)?),
                    _ => fresh.push(Entry::Sweep(sweep)),
                }
            }
        }
    }
    Ok(fresh)
}

/// Counts the active runs in the states that they are in now.
fn count_again(sweep: &mut SweepEntry, filter: &Filter) {
    for run in &sweep.active {
        if still_fits(filter, run) {
            sweep.counts.add(run.state.phase, 1);
            sweep.started = [sweep.started, run.started].into_iter().flatten().min();
            sweep.ended = sweep.ended.max(run.ended);
        }
    }
}

/// The one run of a sweep that still fits.
fn only_run(
    context: &Context,
    history: &History,
    filter: &Filter,
    sweep: &SweepEntry,
) -> Result<Option<Entry>> {
    let mut records = history.list(&Filter {
        submission: Some(sweep.id.clone()),
        limit: None,
        ..filter.clone()
    })?;
    freshen(context, history, &mut records)?;
    let run = records.into_iter().find(|run| still_fits(filter, run));
    Ok(run.map(|run| Entry::Run(Box::new(run))))
}

/// The table of runs and sweeps.
fn text(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let now = towline_host::clock::now();
    let mut table = new_table();
    for entry in entries {
        table.row(match entry {
            Entry::Run(run) => row(&Run::from(run.as_ref()), now),
            Entry::Sweep(sweep) => sweep_row(sweep, now),
        });
    }
    table.render()
}

fn sweep_row(sweep: &SweepEntry, now: Moment) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let (first, counts) = (&sweep.first, &sweep.counts);
    let worst = counts.worst().map(Phase::word).unwrap_or_default();
    let gpus = u64::from(first.gpus) * counts.active();
    let ended = sweep.ended.filter(|_| counts.active() == 0);
    let is_fresh = |run: &RunRecord| run.freshness == Freshness::Fresh;
    let mark = if sweep.active.iter().all(is_fresh) {
        ""
    } else {
        "?"
    };
    let took = sweep
        .started
        .map(|started| human_millis(ended.unwrap_or(now).since(started)))
        .unwrap_or_default();
    vec![
        (sweep.id.short().to_owned(), Paint::Bold),
        plain(columns::cut(&first.name, LONGEST_NAME)),
        (format!("{counts}{mark}"), state_paint(worst)),
        plain(String::new()),
        plain(if gpus > 0 {
            gpus.to_string()
        } else {
            String::new()
        }),
        plain(elsewhere(&first.cluster)),
        (human_millis(now.since(first.created)), Paint::Quiet),
        plain(took),
        plain(format!("{} runs", counts.total())),
        (first.command.clone(), Paint::Quiet),
    ]
}

/// The name of the cluster, unless it is this machine.
pub(super) fn elsewhere(cluster: &str) -> String {
    if cluster == "local" {
        String::new()
    } else {
        cluster.to_owned()
    }
}
