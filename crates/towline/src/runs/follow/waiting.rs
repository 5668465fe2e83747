//! Waits for runs without showing their output.

use super::TROUBLE_EVERY;
use super::Trouble;
use super::progress::Progress;
use crate::context::Context;
use crate::output;
use std::collections::HashMap;
use std::time::Duration;
use std::time::Instant;
use towline_client as client;
use towline_client::Heard;
use towline_core::Error;
use towline_core::ErrorKind;
use towline_core::Result;
use towline_core::RunId;
use towline_core::event::Recorded;
use towline_core::state::RunState;
use towline_wire::daemon::Reply;
use towline_wire::daemon::Request;

/// Waits until every run has ended; returns the states in the order asked for. On a terminal a line
/// says meanwhile how the runs stand.
pub(crate) fn wait_for(
    context: &Context,
    runs: &[RunId],
    timeout: Option<Duration>,
) -> Result<Vec<RunState>> {
    let mut progress = Progress::new(context);
    let noted = |_: &RunId, _: &RunState| Ok(());
    wait_while(context, runs, timeout, None, progress.as_mut(), noted)
}

/// The same for cancelled runs: a run that will not end is an error.
pub(crate) fn wait_for_end(context: &Context, runs: &[RunId]) -> Result<()> {
    let check = |run: &RunId, state: &RunState| match &state.cancel_refused {
        Some(why) if !state.cancel_requested && !state.phase.is_ended() => {
            Err(Error::refused(format!("{run} goes on: {why}")))
        }
        _ => Ok(()),
    };
    wait_while(
        context,
        runs,
        None,
        Some(Instant::now() + EXPLAINED_AFTER),
        None,
        check,
    )
    .map(drop)
}

/// How long to wait for cancelled runs before explaining what takes so long.
pub(super) const EXPLAINED_AFTER: Duration = Duration::from_secs(3);

/// Tells once what the wait is for.
pub(super) fn explain(runs: &[RunId], states: &HashMap<RunId, RunState>) {
    let alive: Vec<&RunId> = runs
        .iter()
        .filter(|run| states.get(*run).is_none_or(|state| !state.phase.is_ended()))
        .collect();
    if let Some(first) = alive.first() {
        let more = if alive.len() > 1 {
            format!(" and {} more", alive.len() - 1)
        } else {
            String::new()
        };
        output::status(&format!(
            "waiting for {first}{more} to end: after SIGTERM a run has its grace, and then it is \
                killed"
        ));
    }
}

/// The states of runs that have all ended: the history knows them, so no daemon is needed.
pub(super) fn ended_before(context: &Context, runs: &[RunId]) -> Result<Option<Vec<RunState>>> {
    let Some(history) = context.maybe_history()? else {
        return Ok(None);
    };
    let records = runs
        .iter()
        .map(|run| history.run(run))
        .collect::<Result<Option<Vec<_>>>>()?;
    let states = records.map(|records| {
        records
            .into_iter()
            .map(|record| record.state)
            .collect::<Vec<_>>()
    });
    Ok(states.filter(|states| states.iter().all(|state| state.phase.is_ended())))
}

/// `explain_at`: when to tell the user what the wait is for.
pub(super) fn wait_while(
    context: &Context,
    runs: &[RunId],
    timeout: Option<Duration>,
    mut explain_at: Option<Instant>,
    mut progress: Option<&mut Progress>,
    check: impl Fn(&RunId, &RunState) -> Result<()>,
) -> Result<Vec<RunState>> {
    if let Some(states) = ended_before(context, runs)? {
        return Ok(states);
    }
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut states: HashMap<RunId, RunState> = HashMap::new();
    let mut trouble = Trouble::default();
    let late = || {
        Error::new(ErrorKind::Timeout, "the runs have not ended in time")
            .hint("they go on; `tow ps` shows them")
    };
    loop {
        let watch = || Request::Watch {
            runs: runs.to_vec(),
            logs: false,
        };
        let (first, mut conversation) =
            match client::ask_until(context.state()?, &watch, deadline, &mut || {
                trouble.look(context);
            }) {
                Err(error) if error.kind() == ErrorKind::Timeout => return Err(late()),
                answer => answer?,
            };
        let mut next = Some(first);
        while let Some(reply) = next {
            match reply {
                Reply::State { run, state }
                | Reply::Event {
                    recorded: Recorded { run, .. },
                    state,
                } => {
                    check(&run, &state)?;
                    let phase = state.phase;
                    let before = states.insert(run, state).map(|state| state.phase);
                    if let Some(progress) = &mut progress {
                        progress.note(before, phase);
                    }
                }
                Reply::WatchEnded => {
                    return Ok(runs
                        .iter()
                        .map(|run| states.get(run).cloned().unwrap_or_default())
                        .collect());
                }
                _ => {}
            }
            let now = Instant::now();
            trouble.look(context);
            if explain_at.is_some_and(|moment| moment <= now) {
                explain_at = None;
                explain(runs, &states);
            }
            let redraw_at = progress.as_mut().map(|progress| progress.draw(now));
            let wake = [deadline, explain_at, redraw_at, Some(now + TROUBLE_EVERY)]
                .into_iter()
                .flatten()
                .min();
            next = match conversation.hear(wake)? {
                Heard::Reply(reply) => Some(*reply),
                Heard::HungUp => None,
                Heard::NotYet if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    return Err(late());
                }
                Heard::NotYet => Some(Reply::Stopping),
            };
        }
    }
}
