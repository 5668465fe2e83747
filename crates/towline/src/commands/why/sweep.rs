//! `tow why` of a sweep: its failures, grouped by cause.

use super::Report;
use std::collections::BTreeMap;
use towline_core::RunId;
use towline_core::counts::PhaseCounts;
use towline_core::reason::Outcome;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_wire::report::Run;
use towline_wire::report::why::{FailureGroup, WhySweep};

/// How many runs of each group are named.
const NAMED_RUNS: usize = 3;

pub(super) fn explain(id: RunId, records: &[RunRecord]) -> Report {
    let runs: Vec<Run> = records.iter().map(Run::from).collect();
    let counts: PhaseCounts = records.iter().map(|run| run.state.phase).collect();
    let failures = failures(&runs);
    let next_step = failures.first().map(|failure| {
        format!(
            "tow why {}    those that failed once more: tow resubmit {} --failed",
            failure.runs[0].short(),
            id.short()
        )
    });
    let summary = format!("{} runs: {counts}", runs.len());
    let answer = WhySweep {
        id,
        summary,
        states: counts,
        failures,
        next_step,
    };
    Report::of(&answer, text)
}

fn text(why: &WhySweep) -> String {
    let mut text = format!("{}: {}\n", why.id, why.summary);
    for FailureGroup { detail, runs, .. } in &why.failures {
        let named: Vec<&str> = runs.iter().take(NAMED_RUNS).map(RunId::short).collect();
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
    text
}

/// The largest group first.
fn failures(runs: &[Run]) -> Vec<FailureGroup> {
    let mut groups: BTreeMap<String, FailureGroup> = BTreeMap::new();
    for run in runs
        .iter()
        .filter(|run| run.state == Phase::Ended(Outcome::Failed).word())
    {
        let detail = run.detail.clone().unwrap_or_default();
        groups
            .entry(detail.clone())
            .or_insert_with(|| FailureGroup {
                reason: run.reason,
                detail,
                runs: Vec::new(),
            })
            .runs
            .push(run.id.clone());
    }
    let mut groups: Vec<FailureGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.runs.len()));
    groups
}
