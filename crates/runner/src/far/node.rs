//! The runner of one node of a job: starts that node's ranks, watches for the order to end, and
//! records how it ended in the run's folder.

mod assigned;
mod carrier;

use super::lease::Lease;
use super::records;
use assigned::assigned;
use carrier::Carrier;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use towline_core::RunId;
use towline_core::cluster::End;
use towline_core::job::IoMode;
use towline_core::obstacle::Obstacle;
use towline_core::reason::{Cause, Ending};
use towline_wire::stage::{Holder, Order, RunFolder, StageFolder};

/// The arguments of the command line.
#[derive(Debug)]
pub struct NodeTask {
    pub stage: PathBuf,
    pub submission: RunId,
    pub run: RunId,
    pub attempt: u32,
}

/// The process that started this runner and ends what it leaves behind, if there is one.
fn parent() -> Option<u32> {
    std::env::var(super::HEAD_PID_VARIABLE)
        .ok()
        .and_then(|pid| pid.parse().ok())
}

/// Whether the parent is gone. A runner ends with its parent, because not every site ends all
/// processes of a job.
fn is_orphan(parent: u32) -> bool {
    std::os::unix::process::parent_id() != parent
}

/// The exit code is 0 when its ranks ended well.
pub fn node_main(task: &NodeTask) -> io::Result<i32> {
    towline_host::process::become_subreaper()?;
    let node = super::scheduler::this_node();
    match parent() {
        Some(parent) => carried(task, node, parent),
        None => guarded(task, node),
    }
}

/// Started by `srun`, which does not end the ranks of a runner that is killed. So a child runs them,
/// and this process records the end of the child, whatever it was.
fn guarded(task: &NodeTask, node: u32) -> io::Result<i32> {
    // The child receives SIGTERM by itself; this process outlives it.
    signal_hook::flag::register(
        signal_hook::consts::SIGTERM,
        Arc::new(AtomicBool::new(false)),
    )?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(super::NODE_VERB).arg(&task.stage).args([
        task.submission.as_str(),
        task.run.as_str(),
        &task.attempt.to_string(),
    ]);
    super::scheduler::leave_step(&mut command);
    let status = command
        .env(super::HEAD_PID_VARIABLE, std::process::id().to_string())
        .stdin(Stdio::null())
        .status()?;
    towline_host::process::kill_all_descendants();
    let collects = node == 0
        && records::order(&StageFolder::new(&task.stage), &task.submission)
            .is_ok_and(|order| writes_data(&order));
    let ending = Ending::cause(Cause::NodeFailed)
        .detail(format!("the runner of node {node} was killed"))
        .with_uncollected(collects.then_some(UNCOLLECTED_DETAIL));
    write_end(
        &StageFolder::new(&task.stage).run(&task.run),
        task.attempt,
        node,
        ending,
    )?;
    Ok(status.code().unwrap_or(1))
}

/// The detail of an ending when no process was left to collect the data.
pub(super) const UNCOLLECTED_DETAIL: &str =
    "the end came before it could be; it is in `io/` of the run's folder: `tow get RUN io`";

/// Whether a run of this submission writes to a datastore from its folder.
pub(super) fn writes_data(order: &Order) -> bool {
    order
        .plan
        .resolved
        .io
        .iter()
        .any(|io| io.mode == IoMode::Write)
}

/// Records the end of a node. The first record counts. On a full disk it waits for space.
fn write_end(folder: &RunFolder, attempt: u32, node: u32, ending: Ending) -> io::Result<()> {
    let end = End {
        at: towline_host::clock::now(),
        ending,
    };
    records::create(&folder.node_end(attempt, node), &end).map(|_| ())
}

fn carried(task: &NodeTask, node: u32, parent: u32) -> io::Result<i32> {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    let stage = StageFolder::new(&task.stage);
    let folder = stage.run(&task.run);
    let lease = Lease::take(folder.lease(task.attempt, Holder::Node(node)))?;
    let ending = match assigned(&stage, task, node) {
        _ if is_orphan(parent) => {
            Ending::cause(Cause::NodeFailed).detail("the job was over before it began")
        }
        Ok((assignment, needs_data)) => {
            let nodes = assignment.shape.nodes;
            let collects = assignment
                .data
                .iter()
                .flat_map(|data| &data.io)
                .any(|order| order.io.mode == IoMode::Write);
            Carrier {
                folder: folder.clone(),
                node,
                attempt: task.attempt,
                parent,
                lease: &lease,
                needs_data,
                collects,
                others_write: collects && nodes > 1,
                nodes,
                ended_by: None,
                ordered_at: None,
                checked_at: Instant::now(),
            }
            .carry(assignment)?
        }
        Err(error) => Ending::not_started(error.to_string(), Obstacle::of(&error)),
    };
    let code = ending.passed_code();
    write_end(&folder, task.attempt, node, ending)?;
    Ok(code)
}

/// A folder on this node's own disk that runs of this user share.
pub fn local_disk() -> PathBuf {
    let base = std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".to_owned());
    Path::new(&base).join(format!("towline-{}", rustix::process::getuid().as_raw()))
}
