//! Changes runs that wait: on this machine, or on their clusters.

use crate::context::Context;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use towline_client as client;
use towline_core::change::Change;
use towline_core::cluster::Caps;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_wire::daemon::{Refusal, Reply, Request};
use towline_wire::report::change::{Changed, Unchanged};

/// How long the daemon may take before its status is asked for.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(5);

/// All runs that are named, each once. All are found before any is changed.
pub(crate) fn named(context: &Context, texts: &[String]) -> Result<Vec<RunRecord>> {
    let history = context.history()?;
    let mut runs: Vec<RunRecord> = Vec::new();
    for text in texts {
        for run in history.find_to_change(text)?.runs() {
            if !runs.iter().any(|known| known.id == run.id) {
                runs.push(run.clone());
            }
        }
    }
    Ok(runs)
}

/// Changes runs. An error if none of them could be changed.
pub(crate) fn change(context: &Context, runs: &[RunRecord], change: &Change) -> Result<Changed> {
    let mut by_cluster: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs {
        by_cluster.entry(&run.cluster).or_default().push(run);
    }
    for (cluster, runs) in &by_cluster {
        check(context, cluster, runs, change)?;
    }
    let mut changed = Changed::default();
    let mut first: Option<Refusal> = None;
    for runs in by_cluster.into_values() {
        let ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
        let (done, refused) = ask(context, &ids, change)?;
        changed.changed.extend(done);
        for (id, refusal) in refused {
            let why = refusal.message.clone();
            changed.unchanged.push(Unchanged { id, why });
            first.get_or_insert(refusal);
        }
    }
    match first {
        Some(refusal) if changed.changed.is_empty() => Err(Error::from(refusal)),
        _ => Ok(changed),
    }
}

/// Whether a kind of cluster can make the change at all. A run that waits here is not there yet.
fn check(context: &Context, cluster: &str, runs: &[&RunRecord], change: &Change) -> Result<()> {
    let is_there = |run: &&RunRecord| run.state.phase != Phase::Drafted;
    let history = context.history()?;
    let is_far = crate::runs::far::is_far(&history, &runs[0].id)?;
    if !is_far || !runs.iter().any(is_there) {
        return Ok(());
    }
    let target = context.cluster(cluster)?;
    if can(target.caps(), change) {
        return Ok(());
    }
    let what = match change {
        Change::Hold => "put on hold",
        Change::Resume => "resumed",
        Change::Edit(edit) if edit.shape.is_some() => "given another size",
        Change::Edit(_) => "edited",
    };
    Err(Error::unsupported(format!(
        "a run that waits on cluster `{cluster}` ({}) cannot be {what}",
        target.kind()
    ))
    .hint("`tow resubmit RUN` submits it again, as you want it; the old one is aborted first"))
}

fn can(caps: Caps, change: &Change) -> bool {
    match change {
        Change::Hold | Change::Resume => caps.holds,
        Change::Edit(edit) => caps.edits && (edit.shape.is_none() || caps.edits_size),
    }
}

type Answer = (Vec<RunId>, Vec<(RunId, Refusal)>);

fn ask(context: &Context, runs: &[RunId], change: &Change) -> Result<Answer> {
    let request = || Request::Change {
        runs: runs.to_vec(),
        change: change.clone(),
    };
    match ask_daemon(context, &request, unwritten)? {
        Reply::Changed { runs, refused } => Ok((runs, refused)),
        _ => Err(Error::bug("the daemon's answer does not match the request")),
    }
}

/// Asks the daemon. If it cannot write, the user gets the error of `unwritten` instead of waiting.
pub(crate) fn ask_daemon(
    context: &Context,
    request: &dyn Fn() -> Request,
    unwritten: fn(&str) -> Error,
) -> Result<Reply> {
    let state = context.state()?;
    let ask = |until| client::ask_until(state, &request, until, &mut || {});
    let reply = match ask(Some(Instant::now() + DAEMON_TIMEOUT)) {
        Err(error) if error.kind() == ErrorKind::Timeout => {
            match client::status(state)?.and_then(|status| status.trouble) {
                Some(trouble) => return Err(unwritten(&trouble)),
                None => ask(None)?,
            }
        }
        answer => answer?,
    };
    Ok(reply.0)
}

/// The error if the daemon cannot record a change yet.
pub(crate) fn unwritten(trouble: &str) -> Error {
    Error::unreachable(format!("the daemon cannot record it yet: {trouble}"))
        .hint("make room, then try again: `tow show` tells whether it was done")
}
