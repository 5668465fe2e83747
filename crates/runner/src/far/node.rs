//! The runner of one node of a job: carries that node's ranks, watches for the word to end, and
//! leaves how it ended in the run's folder.

use super::image;
use super::lease::{Lease, is_lapsed};
use super::records::{self, Records};
use crate::assemble::{self, AttemptFolders, Given, Wanted};
use crate::attempt::{Attempt, Change};
use crate::end_signal::{EndSignal, Giver};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use towline_core::cluster::GpuMake;
use towline_core::cluster::{Claim, End, Started};
use towline_core::job::IoMode;
use towline_core::reason::{Cause, Ending};
use towline_core::redact::SecretSet;
use towline_core::{Error, Result, RunId};
use towline_wire::runner::{Assignment, GangPlace, Stop};
use towline_wire::stage::{Holder, Order, Record, RunFolder, StageFolder, StopOrder};

/// How often the word to end is looked for.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long the scheduler's own signal may come after the word that it has ended the job.
const SCHEDULER_SIGNAL_LAG: Duration = Duration::from_secs(2);

/// What is told on the command line.
#[derive(Debug)]
pub struct NodeTask {
    pub stage: PathBuf,
    pub submission: RunId,
    pub run: RunId,
    pub attempt: u32,
}

/// Who started this runner, where that ends what it leaves behind.
fn parent() -> Option<u32> {
    std::env::var(super::HEAD_PID_VARIABLE)
        .ok()
        .and_then(|pid| pid.parse().ok())
}

/// Nothing outlives its parent: not every site ends all processes of a job with its first.
fn is_orphan(parent: u32) -> bool {
    std::os::unix::process::parent_id() != parent
}

/// The exit code is 0 when its ranks ended well.
pub fn node_main(task: &NodeTask) -> io::Result<i32> {
    towline_host::process::become_subreaper()?;
    let node = std::env::var("SLURM_NODEID")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    match parent() {
        Some(parent) => carried(task, node, parent),
        None => guarded(task, node),
    }
}

/// Started by the scheduler, with nobody above that would end the ranks of a runner that is killed:
/// a child carries them, and its end is told whatever it was.
fn guarded(task: &NodeTask, node: u32) -> io::Result<i32> {
    // The word to end reaches the child by itself; who guards it stays.
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

/// What is said of data when nobody was left to collect it.
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

/// The first to say so is right. On a full disk it waits for room.
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
                told_since: None,
                looked: Instant::now(),
            }
            .carry(assignment)?
        }
        Err(error) => Ending::cause(Cause::NotStarted).detail(error.to_string()),
    };
    let code = ending.passed_code();
    write_end(&folder, task.attempt, node, ending)?;
    Ok(code)
}

/// What this node is to carry, and whether it waits for what the first brings.
fn assigned(stage: &StageFolder, task: &NodeTask, node: u32) -> Result<(Assignment, bool)> {
    let unreadable = |error: io::Error| {
        Error::refused(format!(
            "{} cannot be read",
            stage.submission(&task.submission).display()
        ))
        .source_error(error)
    };
    let order = records::order(stage, &task.submission).map_err(unreadable)?;
    let run = order
        .plan
        .runs
        .iter()
        .find(|run| run.id == task.run)
        .ok_or_else(|| Error::bug("the run is not in its plan"))?;
    let secrets = match fs::read(stage.secrets(&task.submission)) {
        Ok(bytes) => SecretSet::from_private_bytes(&bytes).unwrap_or_default(),
        Err(_) => SecretSet::default(),
    };
    let folder = stage.run(&task.run);
    let claim: Claim = fs::read(folder.record(task.attempt, Record::Claim))
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::other))
        .map_err(unreadable)?;
    let local = local_disk();
    let folders = AttemptFolders {
        run: folder.root().to_owned(),
        snapshots: stage.snapshots(),
        mounts: local.join("mounts").join(task.run.as_str()),
        copies: local.join("copies"),
        transfers: local.join("transfers"),
    };
    let mut assignment = assemble::assignment(Wanted {
        run: &task.run,
        attempt: task.attempt,
        parameters: &run.parameters,
        resolved: &order.plan.resolved,
        secrets: &secrets,
        folders: &folders,
        gpus: Vec::new(),
        gpu_make: GpuMake::default(),
        grace_millis: order.grace_millis,
        collect_every: order.collect_every,
        intent_is_durable: true,
        given: Given::default(),
    })?;
    // The head has laid it out for all nodes, watches the clock, and keeps the nodes after a
    // failure.
    assignment.code = None;
    if order.plan.resolved.code.is_none() {
        // The folder it was submitted from is not here.
        assignment.workdir = folder.root().to_string_lossy().into_owned();
    }
    assignment.time = None;
    assignment.hold_on_failure = None;
    // What is read and written lies in the run's folder, for all nodes: the first sees to it.
    if let Some(data) = assignment.data.as_mut().filter(|_| node > 0) {
        // The first may not have come so far yet.
        for order in data
            .io
            .iter()
            .filter(|order| order.io.mode == IoMode::Write)
        {
            fs::create_dir_all(&order.place).map_err(|error| {
                Error::refused(format!("{} cannot be made", order.place)).source_error(error)
            })?;
        }
        data.io.retain(|order| order.io.mode == IoMode::Mount);
    }
    if assignment
        .data
        .as_ref()
        .is_some_and(|data| data.io.is_empty() && data.copy.is_none())
    {
        assignment.data = None;
    }
    assignment.gang = Some(GangPlace {
        node,
        hosts: claim.hosts,
        port: claim.port,
    });
    image::fit(
        &mut assignment,
        node,
        order
            .plan
            .resolved
            .code
            .as_ref()
            .map(|code| code.root.as_str()),
    )?;
    let is_image = assignment.container.is_some();
    for (name, value) in std::env::vars() {
        if !name.starts_with("TOW_") && (!is_image || image::is_kept(&name)) {
            assignment.variables.0.entry(name).or_insert(value);
        }
    }
    assignment
        .variables
        .0
        .insert("PWD".to_owned(), assignment.workdir.clone());
    assignment.signals_reach_all = order.signals_reach_all;
    let needs_data = node > 0
        && order
            .plan
            .resolved
            .io
            .iter()
            .any(|io| io.mode == IoMode::Read);
    Ok((assignment, needs_data))
}

/// A folder on this node's own disk that runs of this user share.
pub fn local_disk() -> PathBuf {
    let base = std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".to_owned());
    Path::new(&base).join(format!("towline-{}", rustix::process::getuid().as_raw()))
}

struct Carrier<'a> {
    folder: RunFolder,
    node: u32,
    attempt: u32,
    parent: u32,
    lease: &'a Lease,
    /// The first node brings what this one needs too.
    needs_data: bool,
    /// This node collects what all of them write.
    collects: bool,
    /// Others may still be writing what this node collects.
    others_write: bool,
    /// How many nodes the attempt has.
    nodes: u32,
    /// What the word to end said.
    ended_by: Option<Ending>,
    /// Since when a signal of the scheduler is waited for.
    told_since: Option<Instant>,
    looked: Instant,
}

impl Carrier<'_> {
    fn carry(&mut self, assignment: Assignment) -> io::Result<Ending> {
        let mut word = EndSignal::new()?;
        if let Some(ending) = self.wait_for_data(&mut word)? {
            return Ok(ending);
        }
        let reach_all = assignment.signals_reach_all;
        let mut attempt = Attempt::new(assignment, self.folder.root(), "node");
        if self.others_write {
            attempt.wait_for_other_nodes();
        }
        let mut change = attempt.begin();
        loop {
            match change {
                Change::Done => break,
                Change::SetUpStarted | Change::RanksStarted if self.node == 0 => {
                    records::make(
                        &self.folder,
                        self.attempt,
                        Record::Started,
                        &Started {
                            at: towline_host::clock::now(),
                        },
                    )?;
                    if change == Change::RanksStarted {
                        records::create(&self.ready_file(), &())?;
                    }
                }
                _ => {}
            }
            let heard = word.wait(Some(&attempt), END_CHECK_INTERVAL)?;
            if self.others_write && attempt.is_collecting() && !self.is_any_other_alive() {
                self.others_write = false;
                attempt.other_nodes_have_ended();
            }
            if self.is_to_end(&mut attempt, heard, reach_all) {
                // Others may begin any moment: nothing of ours may be alive then.
                towline_host::process::kill_all_descendants();
                let ending = self.ended_by.clone().unwrap_or_else(|| {
                    Ending::cause(Cause::NodeFailed).detail("the node lost touch with the cluster")
                });
                return Ok(ending.with_uncollected(self.collects.then_some(UNCOLLECTED_DETAIL)));
            }
            change = attempt.wake();
        }
        // Why it was told to end counts, not how the ranks took it.
        Ok(self.ended_by.clone().map_or_else(
            || attempt.ending(),
            |ending| ending.with_uncollected(attempt.uncollected()),
        ))
    }

    /// Whether another node has not written down its end and may still be alive.
    fn is_any_other_alive(&self) -> bool {
        let silent = |node: &u32| !self.folder.node_end(self.attempt, *node).exists();
        let silent: Vec<PathBuf> = (0..self.nodes)
            .filter(|node| *node != self.node)
            .filter(silent)
            .map(|node| self.folder.lease(self.attempt, Holder::Node(node)))
            .collect();
        !silent.is_empty()
            && !is_lapsed(&silent, &self.folder.record(self.attempt, Record::Claim))
                .unwrap_or(false)
    }

    fn ready_file(&self) -> PathBuf {
        self.folder
            .root()
            .join(format!("attempt-{}.ready", self.attempt))
    }

    /// The first node brings what is read; the others begin when it has. An ending, if it is not to
    /// be.
    fn wait_for_data(&self, word: &mut EndSignal) -> io::Result<Option<Ending>> {
        while self.needs_data && !self.ready_file().exists() {
            let signalled = word.wait(None, END_CHECK_INTERVAL)?.is_some();
            let records = Records::read(&self.folder)?;
            let stop = records
                .attempts
                .get(&self.attempt)
                .and_then(|of| of.stop.clone());
            if let Some(StopOrder { ending, .. }) = stop {
                return Ok(Some(ending));
            }
            if self.lease.is_lost() || is_orphan(self.parent) {
                return Ok(Some(
                    Ending::cause(Cause::NodeFailed).detail("the node lost touch with the cluster"),
                ));
            }
            if signalled || records.cancelled {
                return Ok(Some(Ending::cause(Cause::ByUser)));
            }
        }
        Ok(None)
    }

    /// Looks for the word to end. `true`: at once, without grace.
    fn is_to_end(&mut self, attempt: &mut Attempt, heard: Option<Giver>, reach_all: bool) -> bool {
        if self.lease.is_lost() {
            return true;
        }
        if reach_all && heard == Some(Giver::Other) && !is_orphan(self.parent) {
            // The ranks have heard it too.
            attempt.stop_told(Stop::ByUser);
        }
        if heard.is_none() && self.looked.elapsed() < END_CHECK_INTERVAL {
            return false;
        }
        self.looked = Instant::now();
        let Ok(records) = Records::read(&self.folder) else {
            return false;
        };
        let stop = records
            .attempts
            .get(&self.attempt)
            .and_then(|of| of.stop.clone());
        if let Some(StopOrder {
            ending,
            at_once,
            by_scheduler,
        }) = stop
        {
            self.ended_by = Some(ending);
            // Its signal is under way to all of us.
            let told_since = *self.told_since.get_or_insert_with(Instant::now);
            if at_once
                || !(reach_all && by_scheduler)
                || told_since.elapsed() >= SCHEDULER_SIGNAL_LAG
            {
                attempt.stop(Stop::ByUser);
            }
            return at_once;
        }
        if is_orphan(self.parent) {
            self.ended_by.get_or_insert_with(|| {
                Ending::cause(Cause::NodeFailed)
                    .detail(format!("the runner of node {} was killed", self.node))
            });
            attempt.stop(Stop::ByUser);
        }
        if heard.is_some() || records.cancelled {
            attempt.stop(Stop::ByUser);
        }
        false
    }
}
