//! Reads the newest state of active runs from the journals of their runners, even if no daemon runs
//! or one is just starting. If there is no daemon, one is started, which records that state and
//! goes on with the queue.

use std::collections::HashMap;
use towline_core::event::RunEvent;
use towline_core::record::{Freshness, RunRecord};
use towline_core::retry::{Next, after};
use towline_core::state::{Step, reduce};
use towline_core::{Result, RunId};
use towline_engine::history::History;
use towline_runner::journal;
use towline_wire::cluster::ClusterStatus;
use towline_wire::layout::StateFolder;

/// The daemon looks at an active cluster every few seconds. A cluster without a look for this long
/// does not answer, or nobody asked.
const QUIET_MILLIS: u64 = 30_000;

/// Brings records of active runs up to date.
pub fn freshen<'r>(
    state: &StateFolder,
    history: &History,
    records: impl Iterator<Item = &'r mut RunRecord>,
) -> Result<()> {
    let mut active = records
        .filter(|record| !record.state.phase.is_ended())
        .peekable();
    if active.peek().is_none() {
        return Ok(());
    }
    // The runs of a sweep are all far or all here, so the plan is read once for all of them.
    let mut far: HashMap<RunId, bool> = HashMap::new();
    for record in active {
        if record.cluster != "local" && is_far_once(history, record, &mut far)? {
            mark_quiet_cluster(state, record);
        } else {
            freshen_one(state, history, record)?;
        }
    }
    if !towline_host::lock::is_held(&state.daemon_lock()).unwrap_or(false) {
        towline_client::nudge(state);
    }
    Ok(())
}

fn is_far_once(
    history: &History,
    record: &RunRecord,
    known: &mut HashMap<RunId, bool>,
) -> Result<bool> {
    let submission = record.sweep.as_ref().unwrap_or(&record.id);
    if let Some(is_far) = known.get(submission) {
        return Ok(*is_far);
    }
    let is_far = self::is_far(history, &record.id)?;
    known.insert(submission.clone(), is_far);
    Ok(is_far)
}

fn freshen_one(state: &StateFolder, history: &History, record: &mut RunRecord) -> Result<()> {
    let Some(runner) = record.state.runner.clone() else {
        return Ok(());
    };
    let path = state.runner_journal(&runner);
    let (alive, records) = match towline_host::lock::is_held(&path)
        .and_then(|alive| Ok((alive, journal::read_end(&path)?)))
    {
        Ok(seen) => seen,
        Err(error) => {
            let why = format!(
                "the journal of its runner, {}, cannot be read: {error}",
                path.display()
            );
            record.freshness = Freshness::Stale {
                since: record.started.unwrap_or(record.created),
                why,
            };
            return Ok(());
        }
    };
    let trace = journal::trace(&records, &record.id, record.state.attempt);
    let attempt = record.state.attempt;
    if let Some(at) = trace.started {
        step(record, &RunEvent::AttemptStarted { attempt });
        record.started = Some(at);
    }
    let Some((at, ending)) = trace.end else {
        if !alive {
            let since = trace.started.or(trace.claimed).unwrap_or(record.created);
            record.freshness = Freshness::Stale {
                since,
                why: "its runner is gone".into(),
            };
        }
        return Ok(());
    };
    // The same rule as in the daemon: an attempt that will be retried does not end the run.
    let policy = history
        .submission_of(&record.id)?
        .and_then(|submission| submission.plan.resolved.retry);
    match after(
        policy.as_ref(),
        &ending,
        record.state.counted_starts,
        record.state.cancel_requested,
    ) {
        Next::Requeue { counted } => step(
            record,
            &RunEvent::AttemptEnded {
                attempt,
                ending,
                counted,
            },
        ),
        Next::End => {
            step(record, &RunEvent::Ended { attempt, ending });
            record.ended = Some(at);
        }
    }
    Ok(())
}

fn step(record: &mut RunRecord, event: &RunEvent) {
    if let Ok(Step::Changed(next)) = reduce(&record.state, event) {
        record.state = *next;
    }
}

/// Whether a run is on another machine than this.
pub fn is_far(history: &History, run: &RunId) -> Result<bool> {
    Ok(history
        .submission_of(run)?
        .is_some_and(|submission| !submission.plan.is_here()))
}

/// Marks a far run as stale if its cluster has not answered lately.
pub fn mark_quiet_cluster(state: &StateFolder, record: &mut RunRecord) {
    let status = match ClusterStatus::read(&state.cluster(&record.cluster, "status")) {
        Ok(Some(status)) => status,
        Ok(None) => return,
        Err(error) => {
            record.freshness = Freshness::Stale {
                since: record.created,
                why: format!("the time of its cluster's last answer cannot be read: {error}"),
            };
            return;
        }
    };
    let seen = status.seen.unwrap_or(record.created);
    let age = towline_host::clock::now().since(seen);
    let why = status
        .trouble
        .or_else(|| (age > QUIET_MILLIS).then(|| "its cluster has not answered since".to_owned()));
    if let Some(why) = why {
        record.freshness = Freshness::Stale { since: seen, why };
    }
}
