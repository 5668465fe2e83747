//! A sweep as one row of `tow ps`: how many of its runs are in which state.

use super::{LONGEST_NAME, new_table, row};
use crate::output::columns;
use crate::output::{Paint, state_paint};
use std::collections::BTreeMap;
use towline_core::RunId;
use towline_core::time::{Moment, human_millis};
use towline_wire::report::Run;

/// How many runs are read for one page of rows, because a sweep may have many.
pub(super) const LOOKED_AT: usize = 2_000;

/// States in the order of interest.
pub(crate) const STATES: [&str; 9] = [
    "failed",
    "lost",
    "running",
    "queued",
    "submitting",
    "staging",
    "drafted",
    "cancelled",
    "succeeded",
];

/// One run, or the listed runs of a sweep.
pub(super) enum Entry<'a> {
    Run(&'a Run),
    Sweep(&'a RunId, Vec<&'a Run>),
}

/// The runs in their order, each sweep where its first run is.
pub(super) fn folded(runs: &[Run]) -> Vec<Entry<'_>> {
    let mut of_sweep: BTreeMap<&RunId, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        if let Some(sweep) = &run.sweep {
            of_sweep.entry(sweep).or_default().push(run);
        }
    }
    let mut entries = Vec::new();
    for run in runs {
        match &run.sweep {
            None => entries.push(Entry::Run(run)),
            Some(sweep) => match of_sweep.remove(sweep) {
                Some(runs) if runs.len() > 1 => entries.push(Entry::Sweep(sweep, runs)),
                Some(_) => entries.push(Entry::Run(run)),
                None => {}
            },
        }
    }
    entries
}

/// The table of runs and sweeps.
pub(super) fn text(entries: &[Entry<'_>]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let now = towline_host::clock::now();
    let mut table = new_table();
    for entry in entries {
        table.row(entry.row(now));
    }
    table.render()
}

impl Entry<'_> {
    pub(super) const fn is_sweep(&self) -> bool {
        matches!(self, Self::Sweep(..))
    }

    fn row(&self, now: Moment) -> Vec<(String, Paint)> {
        match self {
            Self::Run(run) => row(run, now),
            Self::Sweep(sweep, runs) => sweep_row(sweep, runs, now),
        }
    }
}

fn sweep_row(sweep: &RunId, runs: &[&Run], now: Moment) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let first = runs[runs.len() - 1];
    let worst = STATES
        .into_iter()
        .find(|word| runs.iter().any(|run| run.state == *word))
        .unwrap_or_default();
    let gpus: u32 = runs
        .iter()
        .filter(|run| !run.is_ended())
        .map(|run| run.gpus)
        .sum();
    let created = runs.iter().map(|run| run.created.0).min().unwrap_or(now);
    let ended = runs
        .iter()
        .map(|run| run.ended.map(|ended| ended.0))
        .collect::<Option<Vec<_>>>()
        .and_then(|ended| ended.into_iter().max());
    let started = runs.iter().filter_map(|run| run.started).min();
    let took = started
        .map(|started| human_millis(ended.unwrap_or(now).since(started.0)))
        .unwrap_or_default();
    vec![
        (sweep.short().to_owned(), Paint::Bold),
        plain(columns::cut(&first.name, LONGEST_NAME)),
        (counted(runs), state_paint(worst)),
        plain(String::new()),
        plain(if gpus > 0 {
            gpus.to_string()
        } else {
            String::new()
        }),
        plain(elsewhere(first)),
        (human_millis(now.since(created)), Paint::Quiet),
        plain(took),
        plain(format!("{} runs", runs.len())),
        (first.command.clone(), Paint::Quiet),
    ]
}

/// The name of the cluster, unless it is this machine.
pub(super) fn elsewhere(run: &Run) -> String {
    if run.cluster == "local" {
        String::new()
    } else {
        run.cluster.clone()
    }
}

/// `3 failed, 12 running`
pub(crate) fn counted(runs: &[&Run]) -> String {
    let count = |word: &str| runs.iter().filter(|run| run.state == word).count();
    let counts = STATES
        .into_iter()
        .map(|word| (count(word), word))
        .filter(|(count, _)| *count > 0);
    counts
        .map(|(count, word)| format!("{count} {word}"))
        .collect::<Vec<_>>()
        .join(", ")
}
