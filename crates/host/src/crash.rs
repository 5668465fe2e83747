//! Named points at which the shipped program can be made to die, so that tests kill the real
//! program exactly there.
//!
//! `TOW_CRASH_AT=daemon.dispatch.committed` names a point; `@3` after it means the third time that
//! it is passed. `TOW_CRASH_ONCE` names a file: only the process that removes it dies, so that one
//! of several does. Without the first variable a point costs one atomic load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The points of a local run, by process. The crash campaign tries each.
pub const POINTS: &[&str] = &[
    "client.snapshot.taken",
    "client.submit.before",
    "client.submit.sent",
    "client.submit.answered",
    "client.cancel.sent",
    "client.resubmit.cancelled",
    "daemon.submit.received",
    "daemon.submit.committed",
    "daemon.submit.answered",
    "daemon.cancel.received",
    "daemon.cancel.committed",
    "daemon.cancel.sent",
    "daemon.dispatch.before",
    "daemon.dispatch.committed",
    "daemon.dispatch.sent",
    "daemon.started.received",
    "daemon.ended.received",
    "daemon.ended.committed",
    "daemon.requeue.committed",
    "daemon.preempt.committed",
    "daemon.preempt.sent",
    "daemon.adopt.begun",
    "daemon.adopt.done",
    "runner.assigned",
    "runner.claimed",
    "runner.layout.before",
    "runner.layout.done",
    "runner.spawned",
    "runner.started",
    "runner.rank.exited",
    "runner.cancel.received",
    "runner.end.before",
    "runner.end.written",
    "runner.end.sent",
];

/// Points of a run on a far cluster: on this machine, beside the scheduler, and on the nodes.
pub const FAR_POINTS: &[&str] = &[
    "daemon.far.staged",
    "daemon.far.answered",
    "daemon.far.submitted",
    "daemon.far.cancelled",
    "site.order.kept",
    "site.submit.intent",
    "site.submit.asked",
    "site.submit.noted",
    "site.cancel.noted",
    "head.claim.before",
    "head.claimed",
    "head.started",
    "head.end.before",
    "head.end.written",
    "head.requeue.before",
    "head.requeue.done",
];

/// Points of a run on Azure ML: on this machine, and on the nodes.
pub const AZUREML_POINTS: &[&str] = &[
    "azureml.secrets.kept",
    "azureml.program.before",
    "azureml.program.brought",
    "azureml.order.brought",
    "azureml.put.before",
    "azureml.put.done",
    "azureml.cancel.noted",
    "azureml.cancel.done",
    "crew.claim.before",
    "crew.claimed",
    "crew.started",
    "crew.end.before",
    "crew.end.written",
];

/// Points of a backup, on the machine that has the workspace.
pub const WORKSPACE_POINTS: &[&str] = &["backup.root.before", "backup.root.done"];

struct Target {
    point: String,
    left: AtomicU32,
    token: Option<String>,
}

/// The crash point that was asked for, read once.
static CRASH_TARGET: OnceLock<Option<Target>> = OnceLock::new();

fn target() -> Option<&'static Target> {
    CRASH_TARGET
        .get_or_init(|| {
            let text = std::env::var("TOW_CRASH_AT").ok()?;
            let (point, count) = text.split_once('@').unwrap_or((&text, "1"));
            let left = AtomicU32::new(count.parse().unwrap_or(1));
            Some(Target {
                point: point.to_owned(),
                left,
                token: std::env::var("TOW_CRASH_ONCE").ok(),
            })
        })
        .as_ref()
}

/// Kills this process with SIGKILL if this is the point that was asked for.
pub fn pass(point: &str) {
    debug_assert!(
        [POINTS, FAR_POINTS, AZUREML_POINTS, WORKSPACE_POINTS]
            .iter()
            .any(|points| points.contains(&point)),
        "unlisted crash point {point}"
    );
    let Some(target) = target() else { return };
    if target.point != point || target.left.fetch_sub(1, Ordering::Relaxed) != 1 {
        return;
    }
    let mine = target
        .token
        .as_ref()
        .is_none_or(|token| std::fs::remove_file(token).is_ok());
    if mine {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
