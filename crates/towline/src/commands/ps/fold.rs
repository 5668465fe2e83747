//! A sweep as one row of `tow ps`: how many of its runs are in which state.

use super::{LONGEST_NAME, row};
use crate::output::columns;
use crate::output::{Paint, state_paint};
use std::collections::BTreeMap;
use towline_core::RunId;
use towline_core::record::RunRecord;
use towline_core::time::{Moment, human_millis};

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
    Run(&'a RunRecord),
    Sweep(&'a RunId, Vec<&'a RunRecord>),
}

/// The runs in their order, each sweep at the place of its first run.
pub(super) fn folded(records: &[RunRecord]) -> Vec<Entry<'_>> {
    let mut of_sweep: BTreeMap<&RunId, Vec<&RunRecord>> = BTreeMap::new();
    for (sweep, record) in records
        .iter()
        .filter_map(|record| Some((record.sweep.as_ref()?, record)))
    {
        of_sweep.entry(sweep).or_default().push(record);
    }
    let mut entries = Vec::new();
    for record in records {
        match record.sweep.as_ref() {
            None => entries.push(Entry::Run(record)),
            Some(sweep) => match of_sweep.remove(sweep) {
                Some(runs) if runs.len() > 1 => entries.push(Entry::Sweep(sweep, runs)),
                Some(_) => entries.push(Entry::Run(record)),
                None => {}
            },
        }
    }
    entries
}

impl Entry<'_> {
    pub(super) const fn is_sweep(&self) -> bool {
        matches!(self, Self::Sweep(..))
    }

    pub(super) fn row(&self, now: Moment) -> Vec<(String, Paint)> {
        match self {
            Self::Run(record) => row(record, now),
            Self::Sweep(sweep, runs) => sweep_row(sweep, runs, now),
        }
    }
}

fn sweep_row(sweep: &RunId, runs: &[&RunRecord], now: Moment) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let first = runs[runs.len() - 1];
    let worst = STATES
        .into_iter()
        .find(|word| runs.iter().any(|run| run.state.phase.word() == *word))
        .unwrap_or_default();
    let gpus: u32 = runs
        .iter()
        .filter(|run| !run.state.phase.is_ended())
        .map(|run| run.gpus)
        .sum();
    let created = runs.iter().map(|run| run.created).min().unwrap_or(now);
    let ended = runs
        .iter()
        .map(|run| run.ended)
        .collect::<Option<Vec<_>>>()
        .and_then(|ended| ended.into_iter().max());
    let started = runs.iter().filter_map(|run| run.started).min();
    let took = started
        .map(|started| human_millis(ended.unwrap_or(now).since(started)))
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
pub(super) fn elsewhere(record: &RunRecord) -> String {
    if record.cluster == "local" {
        String::new()
    } else {
        record.cluster.clone()
    }
}

/// `3 failed, 12 running`
pub(crate) fn counted(runs: &[&RunRecord]) -> String {
    let count = |word: &str| {
        runs.iter()
            .filter(|run| run.state.phase.word() == word)
            .count()
    };
    let counts = STATES
        .into_iter()
        .map(|word| (count(word), word))
        .filter(|(count, _)| *count > 0);
    counts
        .map(|(count, word)| format!("{count} {word}"))
        .collect::<Vec<_>>()
        .join(", ")
}
