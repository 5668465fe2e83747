//! The seam every cluster has, in the words of one that is not this machine.

use super::FarCluster;
use super::events::observation;
use towline_core::backend::{Handle, Observation};
use towline_core::caps::Caps;
use towline_core::cluster::RunRef;
use towline_core::cluster::{Cursor, LogChunk};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result};

/// What holds wherever our runner is on the nodes.
pub(crate) fn caps() -> Caps {
    Caps {
        preempts: true,
        time_limit: true,
        several_nodes: true,
        containers: true,
        io: true,
        snapshots: true,
        secrets: true,
        hold: true,
        connect: true,
        live_logs: true,
        native_words: true,
        ..Caps::default()
    }
}

fn far(handle: &Handle) -> RunRef {
    RunRef {
        native: Some(handle.native.clone()).filter(|native| !native.is_empty()),
        ..RunRef::of(&handle.run)
    }
}

fn all(handles: &[Handle]) -> Vec<RunRef> {
    handles.iter().map(far).collect()
}

pub(crate) fn submit(
    cluster: &dyn FarCluster,
    plan: &Plan,
    secrets: &SecretSet,
) -> Result<Vec<Handle>> {
    let natives = cluster.submit_plan(plan, secrets)?;
    Ok(plan
        .runs
        .iter()
        .zip(natives)
        .map(|(run, native)| Handle {
            run: run.id.clone(),
            native,
        })
        .collect())
}

pub(crate) fn observe(cluster: &dyn FarCluster, handles: &[Handle]) -> Result<Vec<Observation>> {
    let observed = cluster.observe_runs(&all(handles), true)?;
    match observed.unasked {
        Some(why) if observed.runs.len() < handles.len() => Err(Error::unreachable(why)),
        _ => Ok(observed.runs.iter().map(observation).collect()),
    }
}

pub(crate) fn logs(
    cluster: &dyn FarCluster,
    handle: &Handle,
    from: &Cursor,
    most: usize,
) -> Result<LogChunk> {
    let (bytes, length) = cluster.log_bytes(
        &far(handle),
        from.attempt,
        from.source,
        from.offset,
        most as u64,
    )?;
    Ok(LogChunk {
        bytes,
        truncated_to: length.filter(|length| *length < from.offset),
    })
}

pub(crate) fn cancel(cluster: &dyn FarCluster, handles: &[Handle]) -> Result<()> {
    match cluster.cancel_runs(&all(handles))?.into_iter().next() {
        Some((_, why)) => Err(why),
        None => Ok(()),
    }
}

pub(crate) fn forget(cluster: &dyn FarCluster, handle: &Handle) -> Result<()> {
    cluster.forget_runs(&[far(handle)])
}
