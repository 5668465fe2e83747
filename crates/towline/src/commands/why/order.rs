//! The next step for a run that never began, because a run before it did not end as it had to.

use towline_core::after::Verdict;
use towline_core::reason::Outcome;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::{Result, RunId};
use towline_engine::history::History;

/// How many runs of a chain the advice names.
const MAX_RUNS_OF_A_CHAIN: usize = 10;

/// Names the runs to submit again, the first culprit first. `None` if their plans are not known.
pub(super) fn next_step(history: &History, record: &RunRecord) -> Result<Option<String>> {
    let mut chain = vec![record.id.clone()];
    let mut seen = 0;
    while let Some(run) = chain.get(seen).cloned() {
        seen += 1;
        for before in spoilers(history, &run)? {
            if !chain.contains(&before) && chain.len() < MAX_RUNS_OF_A_CHAIN {
                chain.push(before);
            }
        }
    }
    let Some(first) = chain.last().filter(|_| chain.len() > 1) else {
        return Ok(None);
    };
    let short = record.id.short();
    let counts = history.phases_of(first)?;
    if counts.of(Phase::Ended(Outcome::Succeeded)) == counts.total() {
        return Ok(Some(format!(
            "nothing if {} had to succeed; tow resubmit --now {short} begins it all the same",
            first.short()
        )));
    }
    let words: Vec<&str> = chain.iter().rev().map(RunId::short).collect();
    Ok(Some(format!(
        "tow why {} tells the cause; once it is mended: tow resubmit {}",
        first.short(),
        words.join(" ")
    )))
}

/// The runs that this one waited for and that did not end as they had to.
fn spoilers(history: &History, run: &RunId) -> Result<Vec<RunId>> {
    // A whole sweep has no row of its own.
    let submission = match history.submission_of(run)? {
        Some(submission) => submission,
        None => match history.submission(run)? {
            Some(submission) => submission,
            None => return Ok(Vec::new()),
        },
    };
    let mut all = Vec::new();
    for before in submission.plan.after {
        if before.when.judge(&history.phases_of(&before.run)?) == Verdict::Never {
            all.push(before.run);
        }
    }
    Ok(all)
}
