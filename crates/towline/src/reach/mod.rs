//! The present place of a run, for a shell, a port or an alias. It is looked up each time, because
//! a run may have been started again elsewhere.

pub(crate) mod aliases;
pub(crate) mod ssh_include;
pub(crate) mod tunnels;

use crate::context::Context;
use std::sync::Arc;
use std::time::Duration;
use towline_core::cluster::{Purpose, Reach, ReachRequest, RunRef};
use towline_core::record::RunRecord;
use towline_core::transport::Transport;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::Request;

/// How long a look at the cluster may take.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(60);

/// How to reach a rank of a run, or why that is impossible.
pub(crate) fn reach(
    context: &Context,
    run: &RunId,
    rank: u32,
    purpose: Purpose<'_>,
) -> Result<Reach> {
    let record = current(context, run)?;
    let cluster = context.cluster(&record.cluster)?;
    let node = node_of(&record, rank)?;
    if !record.state.phase.is_ended() && !cluster.is_here() {
        cluster.sign_in()?;
    }
    cluster.reach(&ReachRequest {
        run: &RunRef::known(&record.id, &record.state),
        state: &record.state,
        node,
        rank,
        purpose,
    })
}

/// The machine through which the node of a rank is reached, and the node.
pub(crate) fn through(
    context: &Context,
    run: &RunId,
    rank: u32,
) -> Result<(Arc<dyn Transport>, String)> {
    match reach(context, run, rank, Purpose::Port)? {
        Reach::Through { transport, host } => Ok((transport, host)),
        Reach::Here => {
            Err(Error::refused(format!("{run} is on this machine"))
                .hint("its ports are at localhost"))
        }
        Reach::Command(_) | Reach::Ssh(_) => Err(Error::unsupported(format!(
            "the ports of {run} cannot be reached from here"
        ))),
    }
}

/// The record after another look at the cluster.
fn current(context: &Context, run: &RunId) -> Result<RunRecord> {
    let cluster = context
        .history()?
        .run(run)?
        .map(|record| record.cluster)
        .unwrap_or_default();
    match crate::runs::far::ask_cluster(
        context,
        &cluster,
        &|| Request::Refresh { run: run.clone() },
        REFRESH_TIMEOUT,
    ) {
        // The run has ended, so its cluster does not know it any more.
        Err(error) if error.kind() == towline_core::ErrorKind::NotFound => {}
        answer => drop(answer?),
    }
    let history = context.history()?;
    history
        .run(run)?
        .ok_or_else(|| Error::not_found(format!("no run is called `{run}`")))
}

/// The node of a rank.
fn node_of(record: &RunRecord, rank: u32) -> Result<u32> {
    let per_node = (record.world / record.nodes.max(1)).max(1);
    let node = rank / per_node;
    if node < record.nodes.max(1) {
        return Ok(node);
    }
    Err(
        Error::not_found(format!("{} has no rank {rank}", record.id))
            .hint(format!("ranks 0 to {}", record.world.saturating_sub(1))),
    )
}
