//! The head of a job: claims the next attempt of its run, has it carried on every node, and writes
//! down how it ended. What follows is decided here, on the cluster, whether or not anybody looks.

use super::deadline::Deadline;
use super::ended_code;
use super::lease::{Lease, is_lapsed};
use super::records::{self, Due, Records};
use super::scheduler;
use crate::code::Layout;
use crate::launch::free_port;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use towline_core::RunId;
use towline_core::cluster::{Claim, End, Held, JobStart};
use towline_core::reason::{Cause, Ending};
use towline_host::crash;
use towline_wire::runner::CodeOrder;
use towline_wire::stage::{Holder, LEASE_EVERY, Order, Record, RunFolder, StageFolder, StopOrder};

const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// What a node may take beyond the grace to write down its end.
const NODE_END_SLACK: Duration = Duration::from_secs(3);
/// How long the nodes of an ended run may be kept for removing its code.
const TIDY_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs as the batch process. The exit code is what the scheduler shows.
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
    let me = scheduler::this_start()?;
    let mut head = Head {
        deadline: Deadline::of(&me.job),
        me,
        signals: Signals::new()?,
        stage,
        submission: submission.clone(),
        order,
        run,
        folder,
        leaving: false,
        lost: false,
        leases_looked: Instant::now(),
    };
    head.serve()
}

/// What the scheduler tells by signals.
struct Signals {
    end: UnixStream,
    soon: UnixStream,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let heard = |signal| -> io::Result<UnixStream> {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, theirs)?;
            Ok(ours)
        };
        Ok(Self {
            end: heard(signal_hook::consts::SIGTERM)?,
            soon: heard(signal_hook::consts::SIGUSR1)?,
        })
    }

    fn wait(&self, limit: Duration) {
        let limit = crate::carry::timespec(limit);
        let _ = poll(
            &mut [
                PollFd::new(&self.end, PollFlags::IN),
                PollFd::new(&self.soon, PollFlags::IN),
            ],
            Some(&limit),
        );
    }

    fn is_end(&mut self) -> bool {
        self.end.read(&mut [0; 8]).is_ok_and(|count| count > 0)
    }

    fn is_soon(&mut self) -> bool {
        self.soon.read(&mut [0; 8]).is_ok_and(|count| count > 0)
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
    deadline: Deadline,
    /// The scheduler ends this job, or has it back in its queue: no further attempt begins in it.
    leaving: bool,
    /// A node of it is gone.
    lost: bool,
    leases_looked: Instant,
}

impl Head {
    fn serve(&mut self) -> io::Result<i32> {
        loop {
            let found = Records::read(&self.folder)?;
            match found.due(self.order.plan.resolved.retry.as_ref()) {
                Due::Nothing(ending) => {
                    if found.attempts.is_empty() {
                        self.end(0, ending.clone())?;
                    }
                    records::drop_secrets(&self.stage, &self.submission);
                    if !self.leaving {
                        let begun = Instant::now();
                        // What is left is removed by the next site; nodes are not kept waiting for
                        // it.
                        let _ = ended_code::remove(&self.stage, &self.order, &self.run, &|| {
                            begun.elapsed() > TIDY_TIMEOUT
                        });
                    }
                    if self.leaving {
                        // The scheduler may have put it back for a start that nobody wants.
                        scheduler::withdraw(&self.me.job);
                    }
                    return Ok(ending.passed_code());
                }
                Due::Open(attempt) => {
                    let Some(claim) = found.attempts.get(&attempt).and_then(|of| of.claim.clone())
                    else {
                        continue;
                    };
                    if !self.outlives(attempt, &claim)? {
                        return Ok(0);
                    }
                }
                Due::Begin(_) if self.leaving => return Ok(1),
                Due::Begin(attempt) => self.begin(attempt)?,
            }
        }
    }

    /// An attempt that another start began and nobody ended. A start after it waits until nothing
    /// of it can be alive, and ends it; any other is one too many and leaves.
    fn outlives(&mut self, attempt: u32, claim: &Claim) -> io::Result<bool> {
        let later = claim.by.job == self.me.job && claim.by.restarts < self.me.restarts;
        let leases = self.leases(attempt, claim);
        let claim_file = self.folder.record(attempt, Record::Claim);
        if !later && !is_lapsed(&leases, &claim_file)? {
            return Ok(false);
        }
        if claim.by == self.me {
            // Our own start, once more: nobody can say what it did.
            return Ok(false);
        }
        let ending = Ending::cause(Cause::NodeFailed).detail(format!(
            "its node was lost ({})",
            claim.hosts.first().map_or("", String::as_str)
        ));
        records::make(
            &self.folder,
            attempt,
            Record::Stop,
            &StopOrder {
                ending: ending.clone(),
                at_once: true,
                by_scheduler: false,
            },
        )?;
        while !self.folder.record(attempt, Record::End).exists()
            && !is_lapsed(&leases, &claim_file)?
        {
            self.signals.wait(CHECK_INTERVAL);
            if self.signals.is_end() {
                return Ok(false);
            }
        }
        self.end(attempt, ending)?;
        Ok(true)
    }

    fn leases(&self, attempt: u32, claim: &Claim) -> Vec<PathBuf> {
        let nodes = (0..u32::try_from(claim.hosts.len()).unwrap_or(u32::MAX)).map(Holder::Node);
        [Holder::Head]
            .into_iter()
            .chain(nodes)
            .map(|holder| self.folder.lease(attempt, holder))
            .collect()
    }

    /// The first to say so is right.
    fn end(&self, attempt: u32, ending: Ending) -> io::Result<()> {
        crash::pass("head.end.before");
        records::make(
            &self.folder,
            attempt,
            Record::End,
            &End {
                at: towline_host::clock::now(),
                ending,
            },
        )?;
        crash::pass("head.end.written");
        Ok(())
    }

    fn begin(&mut self, attempt: u32) -> io::Result<()> {
        let hosts = scheduler::hosts()?;
        let claim = Claim {
            by: self.me.clone(),
            at: towline_host::clock::now(),
            hosts,
            port: free_port(),
        };
        crash::pass("head.claim.before");
        if !records::make(&self.folder, attempt, Record::Claim, &claim)? {
            return Ok(());
        }
        crash::pass("head.claimed");
        let lease = Lease::take(self.folder.lease(attempt, Holder::Head))?;
        let ending = self.carry(attempt, &claim, &lease)?;
        if lease.is_lost() {
            // Whoever comes after us says how it ended.
            self.leaving = true;
            return Ok(());
        }
        let ending = self.hold(attempt, ending)?;
        self.end(attempt, ending.clone())?;
        drop(lease);
        self.follow(&ending)
    }

    /// Starts the attempt on all nodes and waits for its end.
    fn carry(&mut self, attempt: u32, claim: &Claim, lease: &Lease) -> io::Result<Ending> {
        let mut stopping = Stopping::default();
        if let Some(ending) = self.lay_out(attempt, &mut stopping)? {
            return Ok(ending);
        }
        let mut nodes = match self.start_nodes(attempt, claim) {
            Ok(nodes) => nodes,
            Err(error) => {
                return Ok(Ending::cause(Cause::NotStarted)
                    .detail(format!("its nodes could not be started: {error}")));
            }
        };
        crash::pass("head.started");
        let mut over = None;
        while over.is_none() {
            self.signals.wait(CHECK_INTERVAL);
            over = nodes.child.try_wait()?;
            self.look(attempt, &mut stopping)?;
            if lease.is_lost() || stopping.is_late(self.grace()) {
                let _ = nodes.child.kill();
                towline_host::process::kill_all_descendants();
                let _ = nodes.child.wait();
                break;
            }
        }
        // The runner of the only node may have been killed: nothing of it lives on.
        towline_host::process::kill_all_descendants();
        if !lease.is_lost() {
            self.outlast(attempt, claim)?;
        }
        let ends = self.node_ends(attempt, claim)?;
        let uncollected = self.uncollected(&ends);
        let ending = stopping.ending.unwrap_or_else(|| {
            combined(
                &ends,
                claim,
                over.and_then(|status| status.code()),
                nodes.complaint().as_deref(),
            )
        });
        Ok(ending.with_uncollected(uncollected.as_deref()))
    }

    /// Why something that was written has not reached its store, where that is so.
    fn uncollected(&self, ends: &[Option<End>]) -> Option<String> {
        let told = ends
            .iter()
            .flatten()
            .find_map(|end| end.ending.uncollected.clone());
        let nobody_collected =
            super::node::writes_data(&self.order) && matches!(ends.first(), Some(None) | None);
        told.or_else(|| nobody_collected.then(|| super::node::UNCOLLECTED_DETAIL.to_owned()))
    }

    /// What started the runners on other nodes may be killed before them: who left no word there is
    /// told to end, and nothing of it can be alive when this returns.
    fn outlast(&mut self, attempt: u32, claim: &Claim) -> io::Result<()> {
        if self.order.plan.resolved.shape.nodes <= 1 || self.silent(attempt, claim)?.is_empty() {
            return Ok(());
        }
        let ending =
            Ending::cause(Cause::NodeFailed).detail("what started it on its nodes is gone");
        records::make(
            &self.folder,
            attempt,
            Record::Stop,
            &StopOrder {
                ending,
                at_once: true,
                by_scheduler: false,
            },
        )?;
        let claim_file = self.folder.record(attempt, Record::Claim);
        loop {
            let silent = self.silent(attempt, claim)?;
            if silent.is_empty() || is_lapsed(&silent, &claim_file)? {
                return Ok(());
            }
            self.signals.wait(CHECK_INTERVAL);
            self.leaving |= self.signals.is_end();
        }
    }

    /// The leases of nodes that have not told how it ended there.
    fn silent(&self, attempt: u32, claim: &Claim) -> io::Result<Vec<PathBuf>> {
        let ends = self.node_ends(attempt, claim)?;
        let silent = (0..)
            .zip(&ends)
            .filter(|(_, end)| end.is_none())
            .map(|(node, _)| self.folder.lease(attempt, Holder::Node(node)));
        Ok(silent.collect())
    }

    /// A node of which nothing is heard any more, though it had begun.
    fn lost_node(&mut self, attempt: u32, claim: &Claim) -> io::Result<Option<Ending>> {
        if self.order.plan.resolved.shape.nodes <= 1 || self.leases_looked.elapsed() < LEASE_EVERY {
            return Ok(None);
        }
        self.leases_looked = Instant::now();
        let claim_file = self.folder.record(attempt, Record::Claim);
        for lease in self.silent(attempt, claim)? {
            if lease.exists() && is_lapsed(std::slice::from_ref(&lease), &claim_file)? {
                // Nothing more is begun on these nodes.
                self.lost = true;
                let host = (0..)
                    .zip(&claim.hosts)
                    .find(|(node, _)| self.folder.lease(attempt, Holder::Node(*node)) == lease)
                    .map_or("", |(_, host)| host);
                return Ok(Some(
                    Ending::cause(Cause::NodeFailed)
                        .detail(format!("nothing is heard of its node {host} any more")),
                ));
            }
        }
        Ok(None)
    }

    fn grace(&self) -> Duration {
        Duration::from_millis(self.order.grace_millis) + NODE_END_SLACK
    }

    /// The code, once for all nodes. An ending, where it could not be laid out or is not wanted any
    /// more.
    fn lay_out(&mut self, attempt: u32, stopping: &mut Stopping) -> io::Result<Option<Ending>> {
        let Some(code) = &self.order.plan.resolved.code else {
            return Ok(None);
        };
        let order = CodeOrder {
            snapshot: code.snapshot.clone().unwrap_or_default(),
            store: self.stage.snapshots().to_string_lossy().into_owned(),
            target: self.folder.code().to_string_lossy().into_owned(),
            root: String::new(),
            links: Vec::new(),
            mapped: code.mapped.clone(),
        };
        let layout = Layout::begin(order, attempt)?;
        while !layout.is_over() {
            let limit = crate::carry::timespec(CHECK_INTERVAL);
            let _ = poll(
                &mut [
                    PollFd::from_borrowed_fd(layout.watch(), PollFlags::IN),
                    PollFd::new(&self.signals.end, PollFlags::IN),
                ],
                Some(&limit),
            );
            self.look(attempt, stopping)?;
            if stopping.ending.is_some() {
                layout.stop();
            }
        }
        let laid_out = layout.finish();
        Ok(stopping.ending.clone().or_else(|| {
            laid_out.err().map(|error| {
                Ending::cause(Cause::NotStarted)
                    .detail(format!("the code could not be laid out: {error}"))
            })
        }))
    }

    fn start_nodes(&self, attempt: u32, claim: &Claim) -> io::Result<Nodes> {
        let own = std::env::current_exe()?.to_string_lossy().into_owned();
        let mut words = vec![
            own,
            super::NODE_VERB.to_owned(),
            self.stage.root().to_string_lossy().into_owned(),
        ];
        words.extend([
            self.submission.to_string(),
            self.run.to_string(),
            attempt.to_string(),
        ]);
        let nodes = self.order.plan.resolved.shape.nodes;
        if claim.hosts.len() < nodes as usize {
            return Err(io::Error::other(format!(
                "{nodes} nodes were asked for and {} were given",
                claim.hosts.len()
            )));
        }
        if nodes > 1 {
            return Nodes::listen(
                scheduler::on_each_node(nodes, &words)
                    .stderr(Stdio::piped())
                    .spawn()?,
            );
        }
        let own = std::process::id().to_string();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("SLURM_NODEID", "0")
            .env(super::HEAD_PID_VARIABLE, own)
            .stdin(Stdio::null())
            .process_group(0);
        Nodes::listen(command.spawn()?)
    }

    /// Whether it is to end, and tells the nodes so.
    fn look(&mut self, attempt: u32, stopping: &mut Stopping) -> io::Result<()> {
        let (ended, soon) = (self.signals.is_end(), self.signals.is_soon());
        if stopping.ending.is_some() {
            return Ok(());
        }
        let found = Records::read(&self.folder)?;
        let of = found.attempts.get(&attempt);
        let told = of.and_then(|of| of.stop.clone());
        let ending = if let Some(StopOrder { ending, .. }) = told {
            self.leaving = true;
            Some(ending)
        } else if found.cancelled {
            Some(Ending::cause(Cause::ByUser))
        } else if ended {
            self.leaving = true;
            Some(scheduler::why_ended(
                &self.me,
                of.and_then(|of| of.claim.as_ref())
                    .map_or(&[], |claim| &claim.hosts[..]),
            ))
        } else if self.deadline.is_near(soon) {
            Some(Ending::cause(Cause::TimeLimit))
        } else {
            let claim = of.and_then(|of| of.claim.as_ref());
            match self.first_failure(attempt)? {
                // A signal from the scheduler that has not come to us yet: it says why.
                Some(Ending {
                    cause: Some(Cause::ByUser),
                    ..
                }) => {
                    self.leaving = true;
                    Some(scheduler::why_ended(
                        &self.me,
                        claim.map_or(&[], |claim| &claim.hosts[..]),
                    ))
                }
                Some(ending) => Some(ending),
                None => claim
                    .map(|claim| self.lost_node(attempt, claim))
                    .transpose()?
                    .flatten(),
            }
        };
        if let Some(ending) = ending {
            records::make(
                &self.folder,
                attempt,
                Record::Stop,
                &StopOrder {
                    ending: ending.clone(),
                    at_once: false,
                    by_scheduler: ended,
                },
            )?;
            *stopping = Stopping {
                ending: Some(ending),
                since: Some(Instant::now()),
            };
        }
        Ok(())
    }

    /// Of several nodes the first that failed ends the others.
    fn first_failure(&self, attempt: u32) -> io::Result<Option<Ending>> {
        let nodes = self.order.plan.resolved.shape.nodes;
        if nodes <= 1 {
            return Ok(None);
        }
        let mut failed: Option<End> = None;
        for node in 0..nodes {
            if let Some(end) = self
                .node_end(attempt, node)?
                .filter(|end| end.ending.cause.is_some())
                && failed.as_ref().is_none_or(|first| end.at < first.at)
            {
                failed = Some(end);
            }
        }
        Ok(failed.map(|end| end.ending))
    }

    fn node_end(&self, attempt: u32, node: u32) -> io::Result<Option<End>> {
        match fs::read(self.folder.node_end(attempt, node)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn node_ends(&self, attempt: u32, claim: &Claim) -> io::Result<Vec<Option<End>>> {
        let nodes = u32::try_from(claim.hosts.len())
            .unwrap_or(u32::MAX)
            .min(self.order.plan.resolved.shape.nodes);
        (0..nodes)
            .map(|node| self.node_end(attempt, node))
            .collect()
    }

    /// Keeps the nodes after a failure, if the user asked for that.
    fn hold(&mut self, attempt: u32, ending: Ending) -> io::Result<Ending> {
        let failed = ending.cause.is_some_and(Cause::is_own_failure);
        let Some(span) = self
            .order
            .plan
            .resolved
            .hold_on_failure
            .filter(|_| failed && !self.leaving)
        else {
            return Ok(ending);
        };
        let at = towline_host::clock::now();
        let begun = Instant::now();
        records::make(
            &self.folder,
            attempt,
            Record::Held,
            &Held {
                at,
                until: at.plus_millis(span.0 * 1000),
                ending: ending.clone(),
            },
        )?;
        while begun.elapsed() < Duration::from_secs(span.0) {
            self.signals.wait(CHECK_INTERVAL);
            if self.signals.is_end() {
                self.leaving = true;
                break;
            }
            if self.folder.cancel().exists() || self.signals.is_soon() {
                break;
            }
        }
        Ok(ending)
    }

    /// What follows in this job, or in its next life.
    fn follow(&mut self, ending: &Ending) -> io::Result<()> {
        let found = Records::read(&self.folder)?;
        let Due::Begin(_) = found.due(self.order.plan.resolved.retry.as_ref()) else {
            return Ok(());
        };
        if (ending.cause == Some(Cause::TimeLimit) || self.lost) && !self.leaving {
            // No time is left in this life of the job, or not all of its nodes are.
            self.leaving = true;
            crash::pass("head.requeue.before");
            scheduler::requeue(&self.me.job)?;
            crash::pass("head.requeue.done");
            // It is ended by the scheduler, which has it back in its queue.
            self.signals.wait(Duration::from_secs(60));
        }
        Ok(())
    }
}

/// What runs on the nodes of an attempt, or starts it there.
struct Nodes {
    child: Child,
    /// What it complained of last.
    complaint: Arc<Mutex<Option<String>>>,
    listener: Option<JoinHandle<()>>,
}

impl Nodes {
    /// What it says is passed on to the job's own output; its last complaint is remembered.
    fn listen(mut child: Child) -> io::Result<Self> {
        let complaint = Arc::new(Mutex::new(None));
        let heard = complaint.clone();
        let listener = child
            .stderr
            .take()
            .map(|said| {
                std::thread::Builder::new()
                    .name("srun".into())
                    .spawn(move || pass_on(said, &heard))
            })
            .transpose()?;
        Ok(Self {
            child,
            complaint,
            listener,
        })
    }

    /// Once it has ended.
    fn complaint(self) -> Option<String> {
        if let Some(listener) = self.listener {
            let begun = Instant::now();
            // Somebody else may have its other end.
            while !listener.is_finished() && begun.elapsed() < NODE_END_SLACK {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.complaint
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

fn pass_on(said: ChildStderr, complaint: &Mutex<Option<String>>) {
    let mut lines = BufReader::new(said);
    let mut line = Vec::new();
    while lines
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        let _ = io::stderr().write_all(&line);
        if let Some(text) = String::from_utf8_lossy(&line)
            .trim()
            .strip_prefix("srun: error: ")
        {
            // The first says why; those that follow tell what came of it.
            complaint
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| text.to_owned());
        }
        line.clear();
    }
}

/// An end that is under way.
#[derive(Default)]
struct Stopping {
    ending: Option<Ending>,
    since: Option<Instant>,
}

impl Stopping {
    fn is_late(&self, grace: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() > grace)
    }
}

/// The ending of an attempt, from those of its nodes.
fn combined(
    ends: &[Option<End>],
    claim: &Claim,
    code: Option<i32>,
    complaint: Option<&str>,
) -> Ending {
    let failed = ends
        .iter()
        .flatten()
        .filter(|end| end.ending.cause.is_some())
        .min_by_key(|end| end.at);
    if let Some(end) = failed {
        return end.ending.clone();
    }
    match ends.iter().position(Option::is_none) {
        None => Ending::success(),
        Some(node) => {
            let host = claim.hosts.get(node).map_or("", String::as_str);
            let said = code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
            let said = complaint.map_or(said, |complaint| format!("srun: {complaint}"));
            Ending::cause(Cause::NodeFailed)
                .detail(format!("node {node} ({host}) left nothing behind ({said})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::time::Moment;

    #[test]
    fn the_first_node_to_fail_says_how_it_ended() {
        let claim = Claim {
            by: JobStart {
                job: "1".into(),
                restarts: 0,
            },
            at: Moment(0),
            hosts: vec!["a".into(), "b".into()],
            port: 1,
        };
        let end = |at, ending| {
            Some(End {
                at: Moment(at),
                ending,
            })
        };
        let failed = Ending::cause(Cause::ExitCode);
        assert_eq!(
            combined(
                &[end(5, Ending::success()), end(6, Ending::success())],
                &claim,
                Some(0),
                None
            ),
            Ending::success()
        );
        assert_eq!(
            combined(
                &[end(9, Ending::cause(Cause::Signal)), end(6, failed.clone())],
                &claim,
                Some(1),
                None
            ),
            failed
        );
        let silent = combined(&[end(5, Ending::success()), None], &claim, Some(137), None);
        assert_eq!(
            (silent.cause, silent.detail.as_deref()),
            (
                Some(Cause::NodeFailed),
                Some("node 1 (b) left nothing behind (code 137)")
            )
        );
        let expired = combined(
            &[None, None],
            &claim,
            Some(167),
            Some("Task launch for StepId=7.0 failed on node b: Job credential expired"),
        );
        assert!(expired.detail.is_some_and(
            |detail| detail.contains("Job credential expired") && detail.contains("node 0 (a)")
        ));
    }
}
