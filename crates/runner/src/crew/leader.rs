//! Node 0 of a job whose nodes share only a network. It supervises the run (`crate::gang`): the
//! other nodes are connected to it, and its records go into the status document.

mod allocation;
mod nodes;
mod outbox;

use super::local_part::LocalPart;
use super::peers::Peers;
use super::status_file::StatusFile;
use super::{Crew, NODE_END_SLACK};
use crate::gang::{Event, Gang, Rules, supervise};
use std::io;
use std::time::{Duration, Instant};
use towline_core::cluster::JobStart;

/// How long a node that still sends heartbeats may take beyond the grace to report its end.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn lead(crew: Crew<'_>) -> io::Result<i32> {
    let mut status_file = StatusFile::read(crew.task)?;
    let me = JobStart {
        job: allocation::job(&crew),
        restarts: status_file.starts(),
    };
    status_file.restart(crew.carrier.order.plan.resolved.retry.as_ref())?;
    let peers = Peers::new(
        &crew.station,
        crew.nodes,
        &crew.carrier.order.shared_token,
        crew.task.pace,
    );
    let gang = Gang::new(rules(&crew));
    let mut leader = Leader {
        crew,
        status_file,
        peers,
        me,
        attempt: 0,
        local_part: None,
        has_reported_uploads: false,
        is_stopping: false,
        gathering_since: None,
        pending: Vec::new(),
    };
    let code = supervise(gang, &mut leader);
    if code.is_err() {
        // The others would wait for us.
        leader.peers.dismiss_all(1);
    }
    code
}

fn rules(crew: &Crew<'_>) -> Rules {
    let order = &crew.carrier.order;
    Rules {
        nodes: crew.nodes,
        hold_on_failure: order
            .plan
            .resolved
            .hold_on_failure
            .map(|span| Duration::from_secs(span.0)),
        stop_timeout: Duration::from_millis(order.grace_millis) + STOP_TIMEOUT,
        leave_timeout: crew.short_grace() + NODE_END_SLACK,
        can_requeue: false,
    }
}

struct Leader<'a> {
    crew: Crew<'a>,
    status_file: StatusFile,
    peers: Peers,
    me: JobStart,
    /// The attempt that was begun last.
    attempt: u32,
    /// This node's own part of the attempt, until it has ended.
    local_part: Option<LocalPart>,
    has_reported_uploads: bool,
    /// The nodes of the attempt have the order to end.
    is_stopping: bool,
    /// Since when the other nodes are awaited.
    gathering_since: Option<Instant>,
    /// Events that have happened and are not reported yet.
    pending: Vec<Event>,
}
