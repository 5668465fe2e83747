//! Truth without a daemon: when none is there, what runners wrote tells how their runs stand. The
//! next daemon is started on the way, to write it down and carry the queue forward.

use crate::context::Context;
use towline_core::Result;
use towline_core::event::RunEvent;
use towline_core::record::{Freshness, RunRecord};
use towline_core::retry::{Next, after};
use towline_core::state::{Step, reduce};
use towline_runner::journal;

/// Brings records of active runs up to date.
pub(crate) fn freshen(context: &Context, records: &mut [RunRecord]) -> Result<()> {
    if records.iter().all(|record| record.state.phase.is_ended()) {
        return Ok(());
    }
    let state = context.state()?;
    if towline_host::lock::is_held(&state.daemon_lock()).unwrap_or(false) {
        return Ok(());
    }
    for record in records.iter_mut().filter(|record| !record.state.phase.is_ended()) {
        let Some(runner) = record.state.runner.clone() else { continue };
        let path = state.runner_journal(&runner);
        let alive = towline_host::lock::is_held(&path).unwrap_or(false);
        let records = journal::read(&path).unwrap_or_default();
        let trace = journal::trace(&records, &record.id, record.state.attempt);
        let attempt = record.state.attempt;
        if let Some(at) = trace.started {
            step(record, &RunEvent::AttemptStarted { attempt });
            record.started = Some(at);
        }
        if let Some((at, ending)) = trace.end {
            // Whether another attempt follows is the next daemon's to say.
            if after(None, &ending, u32::MAX, record.state.cancel_requested) == Next::End {
                step(record, &RunEvent::Ended { attempt, ending });
                record.ended = Some(at);
            }
        } else if !alive {
            record.freshness = Freshness::Stale { since: trace.started.or(trace.claimed).unwrap_or(record.created), why: "its runner is gone".into() };
        }
    }
    let _ = towline_backends::local::client::start(state);
    Ok(())
}

fn step(record: &mut RunRecord, event: &RunEvent) {
    if let Ok(Step::Changed(next)) = reduce(&record.state, event) {
        record.state = next;
    }
}
