//! The head of a job: claims the next attempt of its run, starts it on every node, and records how it
//! ended. The head also decides what follows, on the cluster, with or without a client.

mod code;
mod node_ends;
mod node_starter;
mod signals;
mod stopping;

use super::deadline::Deadline;
use super::ended_code;
use super::lease::{Lease, is_lapsed};
use super::records::{self, Due, Records};
use super::scheduler;
use crate::launch::free_port;
use node_ends::combined;
use signals::Signals;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stopping::Stopping;
use towline_core::RunId;
use towline_core::cluster::{Claim, End, Held, JobStart};
use towline_core::reason::{Cause, Ending};
use towline_host::crash;
use towline_wire::stage::{Holder, Order, Record, RunFolder, StageFolder, StopOrder};

/// How often the head checks records, leases and its child.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The time that a node has beyond the grace to record its end.
const NODE_END_SLACK: Duration = Duration::from_secs(3);
/// How long the nodes of an ended run are kept at most while its code is removed.
const TIDY_TIMEOUT: Duration = Duration::from_secs(10);

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
        leases_checked: Instant::now(),
    };
    head.serve()
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
    /// The scheduler ends this job or has requeued it: no further attempt begins in it.
    leaving: bool,
    /// The job has lost a node.
    lost: bool,
    leases_checked: Instant,
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
                        // The next site removes the rest; the nodes do not wait for it.
                        let _ = ended_code::remove(&self.stage, &self.order, &self.run, &|| {
                            begun.elapsed() > TIDY_TIMEOUT
                        });
                    }
                    if self.leaving {
                        // The scheduler may have requeued a job that has nothing left to do.
                        scheduler::withdraw(&self.me.job);
                    }
                    return Ok(ending.passed_code());
                }
                Due::Open(attempt) => {
                    let Some(claim) = found.attempts.get(&attempt).and_then(|of| of.claim.clone())
                    else {
                        continue;
                    };
                    if !self.end_open_attempt(attempt, &claim)? {
                        return Ok(0);
                    }
                }
                Due::Begin(_) if self.leaving => return Ok(1),
                Due::Begin(attempt) => self.begin(attempt)?,
            }
        }
    }

    /// Deals with an attempt that another start of the job began and did not end. A later start
    /// waits until nothing of the attempt can be alive, ends it and returns `true`. Any other start
    /// is superfluous and returns `false`.
    fn end_open_attempt(&mut self, attempt: u32, claim: &Claim) -> io::Result<bool> {
        let is_later = claim.by.job == self.me.job && claim.by.restarts < self.me.restarts;
        let leases = self.leases(attempt, claim);
        let claim_file = self.folder.record(attempt, Record::Claim);
        if !is_later && !is_lapsed(&leases, &claim_file)? {
            return Ok(false);
        }
        if claim.by == self.me {
            // This very start claimed it before: it is unknown what it did.
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

    /// Records the end. The first record counts.
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
            // The next start of the job decides how it ended.
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
            self.check_for_end(attempt, &mut stopping)?;
            if lease.is_lost() || stopping.is_late(self.grace()) {
                let _ = nodes.child.kill();
                towline_host::process::kill_all_descendants();
                let _ = nodes.child.wait();
                break;
            }
        }
        // The runner of the only node may have been killed and have left processes behind.
        towline_host::process::kill_all_descendants();
        if !lease.is_lost() {
            self.stop_silent_nodes(attempt, claim)?;
        }
        let ends = self.node_ends(attempt, claim)?;
        let uncollected = self.uncollected(&ends);
        let ending = stopping.ending.unwrap_or_else(|| {
            combined(
                &ends,
                claim,
                over.and_then(|status| status.code()),
                nodes.error().as_deref(),
            )
        });
        Ok(ending.with_uncollected(uncollected.as_deref()))
    }

    fn grace(&self) -> Duration {
        Duration::from_millis(self.order.grace_millis) + NODE_END_SLACK
    }

    /// Holds the nodes after a failure, if the user asked for that.
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
            if self.folder.cancel().exists() || self.signals.is_near_end() {
                break;
            }
        }
        Ok(ending)
    }

    /// Requeues the job where the next attempt cannot begin in it.
    fn follow(&mut self, ending: &Ending) -> io::Result<()> {
        let found = Records::read(&self.folder)?;
        let Due::Begin(_) = found.due(self.order.plan.resolved.retry.as_ref()) else {
            return Ok(());
        };
        if (ending.cause == Some(Cause::TimeLimit) || self.lost) && !self.leaving {
            // The job has no time left, or has lost a node.
            self.leaving = true;
            crash::pass("head.requeue.before");
            scheduler::requeue(&self.me.job)?;
            crash::pass("head.requeue.done");
            // The scheduler ends this start of the job and queues it again.
            self.signals.wait(Duration::from_secs(60));
        }
        Ok(())
    }
}
