//! Carrying out the supervisor's orders over the three seams.

use super::deadline::Deadline;
use super::{CHECK_INTERVAL, Due, Event, Gang, Order};
use crate::launch::free_port;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};
use towline_core::cluster::{Claim, Held, JobStart};
use towline_core::reason::Ending;

/// What the scheduler gave to this start of the job, and what it can be asked.
pub(crate) trait Allocation {
    /// This start of this job.
    fn job_start(&self) -> &JobStart;
    /// The hosts of the job, by node.
    fn hosts(&self) -> io::Result<Vec<String>>;
    /// The time until the scheduler ends the job; `None` if there is no limit, or none is known.
    fn time_left(&self) -> Option<Duration> {
        None
    }
    /// Whether the scheduler has warned of the time limit since the last call.
    fn is_warned(&mut self) -> bool {
        false
    }
    /// Why the scheduler ends the job.
    fn why_ended(&self) -> Ending;
    /// Puts the job back into the queue: the scheduler ends it and starts it again.
    fn requeue(&mut self) -> io::Result<()>;
}

/// Where the records of the run go.
pub(crate) trait Outbox {
    /// What the records say is next.
    fn due(&mut self) -> io::Result<Due>;
    /// Ends an attempt that an earlier start of the job has left open, once no process of it can be
    /// alive. `false` if another start has the run.
    fn end_open(&mut self, attempt: u32) -> io::Result<bool>;
    /// Records that this start begins the attempt. Nothing of it may run before. `false` if
    /// somebody else has claimed it.
    fn claim(&mut self, attempt: u32, claim: &Claim) -> io::Result<bool>;
    /// Records that its first process runs.
    fn started(&mut self, attempt: u32);
    /// Records that the nodes are held.
    fn held(&mut self, attempt: u32, held: Held) -> io::Result<()>;
    /// Records how the attempt ended. The first record counts.
    fn end(&mut self, attempt: u32, ending: Ending) -> io::Result<()>;
}

/// The nodes of the job.
pub(crate) trait Nodes {
    /// Waits for the nodes of the job; [`Event::Gathered`] follows.
    fn gather(&mut self);
    /// Starts the attempt on all nodes. [`Event::NodeEnded`] or [`Event::NodeLost`] follows for
    /// each of them.
    fn begin(&mut self, attempt: u32, claim: &Claim) -> io::Result<()>;
    /// Ends the attempt on all nodes, with its grace.
    fn stop(&mut self, stop: &StopNodes) -> io::Result<()>;
    /// Shortens what is under way, because the scheduler does not wait long.
    fn hurry(&mut self);
    /// These nodes take too long to end: nothing more is expected of them.
    fn give_up(&mut self, nodes: &[u32]);
    /// Ends every process on this node at once.
    fn kill(&mut self);
    /// What has happened; waits for something to happen, at most for `limit`.
    fn wait(&mut self, limit: Duration) -> io::Result<Vec<Event>>;
    /// Leaves the job. Returns the exit code that the scheduler shows.
    fn leave(&mut self, leave: &Leave) -> io::Result<i32>;
}

/// The order to end an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StopNodes {
    pub(crate) attempt: u32,
    pub(crate) ending: Ending,
    /// The scheduler's own signal is on its way to all processes.
    pub(crate) by_scheduler: bool,
    /// The scheduler ends the job and does not wait long.
    pub(crate) is_leaving: bool,
}

/// How a start of the job is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leave {
    pub(crate) exit: Exit,
    /// The scheduler ends the job.
    pub(crate) is_leaving: bool,
    /// All nodes are there and may go on.
    pub(crate) is_complete: bool,
}

/// Why a start of the job is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run has ended.
    Ended(Ending),
    /// The run goes on in another start, because the scheduler ends this one.
    Leaving,
    /// The run goes on in another job, because this one has lost nodes. The exit code is that of
    /// the last attempt.
    NodesLost(i32),
    /// Another start of the job has the run.
    NotOurs,
    /// We may not run any process any more.
    CutOff,
}

/// Supervises the run until nothing is left to do in this start of the job. Returns the exit code.
pub(crate) fn supervise<M: Allocation + Outbox + Nodes>(
    gang: Gang,
    means: &mut M,
) -> io::Result<i32> {
    let mut supervisor = Supervisor {
        deadline: Deadline::new(means.time_left()),
        gang,
        means,
        begun: Instant::now(),
        claim: None,
        orders: VecDeque::from([Order::Decide]),
        events: VecDeque::new(),
    };
    loop {
        if let Some(code) = supervisor.work()? {
            return Ok(code);
        }
        let events = supervisor.means.wait(CHECK_INTERVAL)?;
        supervisor.events.extend(events);
        supervisor.check_time();
        supervisor.events.push_back(Event::Tick);
    }
}

struct Supervisor<'a, M> {
    gang: Gang,
    means: &'a mut M,
    deadline: Deadline,
    begun: Instant,
    claim: Option<Claim>,
    orders: VecDeque<Order>,
    events: VecDeque<Event>,
}

impl<M: Allocation + Outbox + Nodes> Supervisor<'_, M> {
    /// Works until there is neither an order nor an event. The orders of an event are carried out
    /// before the next event counts. Returns the exit code once the job is left.
    fn work(&mut self) -> io::Result<Option<i32>> {
        loop {
            if let Some(order) = self.orders.pop_front() {
                if let Order::Exit(leave) = &order {
                    return self.means.leave(leave).map(Some);
                }
                if let Some(answer) = self.carry_out(order)? {
                    self.events.push_front(answer);
                }
            } else if let Some(event) = self.events.pop_front() {
                self.orders
                    .extend(self.gang.step(event, self.begun.elapsed()));
            } else {
                return Ok(None);
            }
        }
    }

    /// Carries out an order. Returns its answer, if it has one.
    fn carry_out(&mut self, order: Order) -> io::Result<Option<Event>> {
        let means = &mut *self.means;
        match order {
            Order::Decide => return Ok(Some(Event::Due(means.due()?))),
            Order::EndOpen(attempt) => {
                return Ok(Some(Event::OpenEnded(means.end_open(attempt)?)));
            }
            Order::Claim(attempt) => {
                let claim = Claim {
                    by: means.job_start().clone(),
                    at: towline_host::clock::now(),
                    hosts: means.hosts()?,
                    port: free_port(),
                };
                let is_ours = means.claim(attempt, &claim)?;
                self.claim = Some(claim);
                return Ok(Some(Event::Claimed(is_ours)));
            }
            Order::AskWhy => return Ok(Some(Event::EndedByScheduler(means.why_ended()))),
            Order::Gather => means.gather(),
            Order::Begin(attempt) => {
                if let Some(claim) = &self.claim {
                    means.begin(attempt, claim)?;
                }
            }
            Order::RecordStarted(attempt) => means.started(attempt),
            Order::Stop(stop) => means.stop(&stop)?,
            Order::Hurry => means.hurry(),
            Order::GiveUp(nodes) => means.give_up(&nodes),
            Order::Kill => means.kill(),
            Order::Hold {
                attempt,
                span,
                ending,
            } => {
                let at = towline_host::clock::now();
                let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
                let until = at.plus_millis(millis);
                means.held(attempt, Held { at, until, ending })?;
            }
            Order::End { attempt, ending } => means.end(attempt, ending)?,
            Order::Requeue => means.requeue()?,
            Order::Exit(_) => {}
        }
        Ok(None)
    }

    fn check_time(&mut self) {
        let is_warned = self.means.is_warned();
        if self.gang.counts_time() && self.deadline.is_near(is_warned, || self.means.time_left()) {
            self.events.push_back(Event::TimeIsNear);
        }
    }
}
