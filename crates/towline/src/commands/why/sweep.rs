//! `tow why` of a sweep: its failures, grouped by cause.

use super::Report;
use crate::commands::ps::fold::counted;
use serde::Serialize;
use std::collections::BTreeMap;
use towline_core::RunId;
use towline_core::reason::Outcome;
use towline_core::record::RunRecord;
use towline_core::state::Phase;

#[derive(Serialize)]
struct WhySweep<'a> {
    id: &'a RunId,
    /// One sentence.
    summary: String,
    failures: Vec<Failure<'a>>,
    next_step: Option<String>,
}

/// Runs that failed for the same reason.
#[derive(Serialize)]
struct Failure<'a> {
    reason: Option<&'static str>,
    detail: String,
    runs: Vec<&'a RunId>,
}

/// How many runs of each group are named.
const NAMED_RUNS: usize = 3;

pub(super) fn explain(id: &RunId, runs: &[RunRecord]) -> Report {
    let failures = failures(runs);
    let next_step = failures.first().map(|failure| {
        format!(
            "tow why {}    those that failed once more: tow resubmit {}",
            failure.runs[0].short(),
            id.short()
        )
    });
    let why = WhySweep {
        id,
        summary: format!(
            "{} runs: {}",
            runs.len(),
            counted(&runs.iter().collect::<Vec<_>>())
        ),
        failures,
        next_step,
    };
    let mut text = format!("{id}: {}\n", why.summary);
    for Failure { detail, runs, .. } in &why.failures {
        let named: Vec<&str> = runs
            .iter()
            .take(NAMED_RUNS)
            .map(|run| run.short())
            .collect();
        let more = if runs.len() > NAMED_RUNS {
            format!(" and {} more", runs.len() - NAMED_RUNS)
        } else {
            String::new()
        };
        text += &format!(
            "  {} failed: {detail} ({}{more})\n",
            runs.len(),
            named.join(", ")
        );
    }
    if let Some(step) = &why.next_step {
        text += &format!("next: {step}\n");
    }
    Report::new(text, &why)
}

/// The groups, the largest first.
fn failures(runs: &[RunRecord]) -> Vec<Failure<'_>> {
    let mut groups: BTreeMap<String, Failure<'_>> = BTreeMap::new();
    for run in runs
        .iter()
        .filter(|run| run.state.phase == Phase::Ended(Outcome::Failed))
    {
        let ending = run.state.ending.clone().unwrap_or_default();
        let detail = ending.to_string();
        let reason = ending.cause.map(towline_core::reason::Cause::word);
        groups
            .entry(detail.clone())
            .or_insert_with(|| Failure {
                reason,
                detail,
                runs: Vec::new(),
            })
            .runs
            .push(&run.id);
    }
    let mut groups: Vec<Failure<'_>> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.runs.len()));
    groups
}
