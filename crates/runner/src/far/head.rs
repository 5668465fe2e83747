//! The head of a job whose nodes share a folder: the first process that the scheduler starts. It
//! supervises the run (`crate::gang`), with records and leases in the run's folder, on the cluster,
//! with or without a client.

mod allocation;
mod node_ends;
mod node_starter;
mod nodes;
mod outbox;
mod signals;

use super::lease::Lease;
use super::records;
use super::scheduler;
use crate::gang::{Event, Gang, Rules, supervise};
use nodes::Work;
use signals::Signals;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant};
use towline_core::RunId;
use towline_core::cluster::{Claim, JobStart};
use towline_wire::stage::{Order, RunFolder, StageFolder};

/// The time that a node has beyond the grace to record its end.
const NODE_END_SLACK: Duration = Duration::from_secs(3);

/// Runs as the batch process. The exit code is the one that the scheduler shows.
pub fn head_main(stage: &Path, submission: &RunId) -> io::Result<i32> {
    towline_host::process::become_subreaper()?;
    let stage = StageFolder::new(stage);
    let order = records::order(&stage, submission)?;
    let task = scheduler::this_task();
    let run = match task {
        Some(number) => order.plan.runs.get((number as usize).wrapping_sub(1)),
        None => order.plan.runs.first(),
    };
    let run = run
        .ok_or_else(|| io::Error::other("the job is no run of its plan"))?
        .id
        .clone();
    let folder = stage.run(&run);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder.root())?;
    let gang = Gang::new(rules(&order));
    let mut head = Head {
        me: scheduler::this_start()?,
        signals: Signals::new()?,
        stage,
        submission: submission.clone(),
        order,
        run,
        folder,
        current: None,
        work: Work::Nothing,
        is_stopping: false,
        leases_checked: Instant::now(),
        pending: Vec::new(),
    };
    supervise(gang, &mut head)
}

fn rules(order: &Order) -> Rules {
    let resolved = &order.plan.resolved;
    let grace = Duration::from_millis(order.grace_millis) + NODE_END_SLACK;
    Rules {
        nodes: resolved.shape.nodes,
        hold_on_failure: resolved
            .hold_on_failure
            .map(|span| Duration::from_secs(span.0)),
        stop_timeout: grace,
        leave_timeout: grace,
        can_requeue: true,
    }
}

struct Head {
    stage: StageFolder,
    submission: RunId,
    order: Order,
    run: RunId,
    folder: RunFolder,
    me: JobStart,
    signals: Signals,
    /// The attempt that this start of the job has claimed.
    current: Option<Current>,
    work: Work,
    /// The nodes of the attempt have the order to end.
    is_stopping: bool,
    leases_checked: Instant,
    /// Events that have happened and are not reported yet.
    pending: Vec<Event>,
}

/// An attempt that is claimed and has no end.
struct Current {
    attempt: u32,
    claim: Claim,
    lease: Lease,
    /// It has failed, and its nodes are held.
    is_held: bool,
}
