//! Batches the daemon's writes: they are queued one by one, and written into the history in one
//! transaction. There is no writer thread, because waking one would take longer than most writes.

use super::{Announced, Cancelled, Chosen, Effect, FirstStart, Then};
use std::collections::VecDeque;
use std::sync::Arc;
use towline_core::cluster::RunRef;
use towline_core::counts::PhaseCounts;
use towline_core::event::RunEvent;
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::state::RunState;
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::cluster::NamedCluster;

/// One write.
#[derive(Debug, Clone)]
pub enum Write {
    /// A new submission. With an intent, its one run is about to start.
    Submit(Box<Submission>),
    Event(Box<EventWrite>),
    Forget {
        run: RunId,
    },
    ForgetUnused,
    Tag {
        run: RunId,
        add: Vec<String>,
        remove: Vec<String>,
        at: Moment,
    },
}

/// An event of a run, and the state that it led to.
#[derive(Debug, Clone)]
pub struct EventWrite {
    pub key: RunKey,
    pub event: RunEvent,
    pub state: RunState,
    pub at: Moment,
}

/// A submission to be written. Its secrets and its cluster are on disk before it is.
#[derive(Debug, Clone)]
pub struct Submission {
    pub plan: Arc<Plan>,
    pub state: RunState,
    pub at: Moment,
    pub intent: Option<Box<(RunEvent, RunState)>>,
    pub secrets: SecretSet,
    pub cluster: Option<NamedCluster>,
}

/// The result of a write.
#[derive(Debug, Clone)]
pub enum Written {
    /// The keys of the new runs; `None` if the history already had the submission.
    Submitted(Option<Vec<RunKey>>),
    Event(i64),
    Forgotten(bool),
    /// The number of the event, and all tags of the run; `None` if nothing changed.
    Tagged(Option<(i64, Vec<String>)>),
    Nothing,
}

/// A question to the history.
#[derive(Debug, Clone)]
pub enum Query {
    /// The states of runs, in this order.
    States(Vec<RunId>),
    Plan(RunId),
    /// Where a run is, and its state.
    Run(RunId),
    /// The far runs among these that this machine submitted.
    FarRuns(Vec<RunId>),
    /// How many runs of each of these runs and submissions are in which phase.
    Phases(Vec<RunId>),
    /// Nothing: the answer comes after every write before it.
    Nothing,
}

#[derive(Debug)]
pub enum Answer {
    States(Result<Vec<Option<RunState>>>),
    Plan(Result<Option<Arc<Plan>>>),
    Run(Result<Option<StoredRun>>),
    FarRuns(Vec<StoredRun>),
    Phases(Result<Vec<PhaseCounts>>),
    Nothing,
}

/// A run in the history.
#[derive(Debug, Clone)]
pub struct StoredRun {
    pub run: RunId,
    /// The far cluster it is on; none if it ran on this machine.
    pub far: Option<String>,
    pub state: RunState,
}

/// What follows a write.
#[derive(Debug)]
pub(super) enum WriteThen {
    Submitted {
        plan: Arc<Plan>,
        first: Option<Box<FirstStart>>,
        connection: u64,
    },
    Cancelled {
        cancelled: Box<Cancelled>,
        connection: u64,
    },
    Forgotten {
        runs: Vec<RunId>,
        connection: u64,
    },
    Recorded {
        events: Vec<Announced>,
        then: Then,
    },
    RemoveJournals {
        runners: Vec<String>,
    },
    Changed {
        changes: super::change::Changes,
        connection: u64,
    },
    Tagged {
        runs: Vec<RunId>,
        at: Moment,
        connection: u64,
    },
}

/// What follows a read.
#[derive(Debug)]
pub(super) enum ReadThen {
    Watch {
        connection: u64,
        runs: Vec<RunId>,
        logs: bool,
    },
    Observe {
        connection: u64,
    },
    Dispatch(Chosen),
    SubmitFar {
        cluster: String,
        submission: RunId,
        again: bool,
    },
    /// An order about a run of which memory holds nothing.
    AskFar {
        connection: u64,
        run: RunId,
        request: super::far::FarRequest,
    },
    ForgetFar,
    /// Runs and submissions that others wait for.
    Judge {
        ended: Vec<RunId>,
    },
    /// A cancel behind the submissions that are read.
    CancelFar {
        cluster: String,
        runs: Vec<RunRef>,
    },
    Refreshed {
        connection: u64,
    },
}

#[derive(Debug)]
struct WriteOrder {
    writes: Arc<[Write]>,
    durable: bool,
    then: WriteThen,
}

impl WriteOrder {
    /// Whether whoever asked can be told that it did not happen.
    fn is_refusable(&self) -> bool {
        let can_be_refused = |write: &Write| {
            matches!(
                write,
                Write::Submit(_) | Write::Forget { .. } | Write::Tag { .. }
            )
        };
        self.writes.iter().any(can_be_refused)
    }
}

#[derive(Debug)]
enum Order {
    Write(WriteOrder),
    Read(Query, ReadThen),
}

/// The outcome of an order, for the daemon to act on.
#[derive(Debug)]
pub(super) enum Outcome {
    Wrote(WriteThen, Result<Vec<Written>>),
    Read(ReadThen, Answer),
}

/// The orders that are being carried out, and the outcomes so far.
#[derive(Debug, Default)]
struct Flush {
    rest: VecDeque<Order>,
    /// The writes of the last commit. Several are tried together first, then one by one.
    committing: VecDeque<WriteOrder>,
    is_together: bool,
    reading: Option<ReadThen>,
    /// Writes that failed, or are behind one. They stay in front of what is queued meanwhile.
    kept: VecDeque<Order>,
    outcomes: Vec<Outcome>,
    after_failure: bool,
}

/// A queue of writes and reads, carried out together by a flush. Each of them has an outcome.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    orders: VecDeque<Order>,
    flush: Option<Flush>,
    /// Why the first write failed. It and all behind it are tried again later, in their order.
    stalled: Option<Error>,
    /// The daemon asked for a retry.
    is_retrying: bool,
}

/// What a flush needs next.
#[derive(Debug)]
pub(super) enum Progress {
    Call(Effect),
    Done(Vec<Outcome>),
}

impl Ledger {
    /// Queues a write of all or nothing. With `durable` its outcome comes after it is on disk.
    pub(super) fn write(&mut self, writes: Vec<Write>, durable: bool, then: WriteThen) {
        self.orders.push_back(Order::Write(WriteOrder {
            writes: writes.into(),
            durable,
            then,
        }));
    }

    /// Queues a read, which sees every write queued before it.
    pub(super) fn read(&mut self, query: Query, then: ReadThen) {
        self.orders.push_back(Order::Read(query, then));
    }

    /// Whether a flush would do something now.
    pub(super) fn has_work(&self) -> bool {
        !self.orders.is_empty() && (self.stalled.is_none() || self.is_retrying)
    }

    /// Whether nothing is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.flush.is_none()
    }

    /// Whether the answer to a commit or a read is still to come.
    pub(super) const fn is_flushing(&self) -> bool {
        self.flush.is_some()
    }

    /// Why nothing can be written at present.
    pub(super) const fn stalled(&self) -> Option<&Error> {
        self.stalled.as_ref()
    }

    /// Lets a stalled ledger try again.
    pub(super) const fn retry(&mut self) {
        self.is_retrying = true;
    }

    /// Begins to carry out everything that is queued, in one transaction if possible.
    ///
    /// A write that fails and must not be lost keeps its place, and no write behind it is carried
    /// out, because a later write may depend on the earlier one (a journal is removed because its
    /// run's end is in the history). Submissions and removals behind it are refused with the same
    /// error. Reads are answered from what is written.
    pub(super) fn begin(&mut self) -> Progress {
        let after_failure = self.stalled.take().is_some();
        self.is_retrying = false;
        let flush = Flush {
            rest: std::mem::take(&mut self.orders),
            after_failure,
            ..Flush::default()
        };
        self.go_on(flush)
    }

    /// Goes on after the answer to a commit.
    pub(super) fn committed(&mut self, result: Result<Vec<Written>>) -> Progress {
        let Some(mut flush) = self.flush.take() else {
            return Progress::Done(Vec::new());
        };
        let was_together = std::mem::take(&mut flush.is_together);
        match result {
            Ok(mut results) if was_together => {
                for order in std::mem::take(&mut flush.committing) {
                    let rest = results.split_off(order.writes.len().min(results.len()));
                    let own = std::mem::replace(&mut results, rest);
                    flush.outcomes.push(Outcome::Wrote(order.then, Ok(own)));
                }
            }
            // One of them failed. Which one shows when they are tried one by one.
            Err(_) if was_together && flush.committing.len() > 1 => {}
            result => self.settle_first(&mut flush, result),
        }
        self.go_on(flush)
    }

    /// Goes on after the answer to a read.
    pub(super) fn answered(&mut self, answer: Answer) -> Progress {
        let Some(mut flush) = self.flush.take() else {
            return Progress::Done(Vec::new());
        };
        if let Some(then) = flush.reading.take() {
            flush.outcomes.push(Outcome::Read(then, answer));
        }
        self.go_on(flush)
    }

    /// Settles the first of the writes that are tried one by one.
    fn settle_first(&mut self, flush: &mut Flush, result: Result<Vec<Written>>) {
        let Some(order) = flush.committing.pop_front() else {
            return;
        };
        match result {
            Err(error) if !order.is_refusable() => {
                self.stalled.get_or_insert(error);
                flush.kept.push_back(Order::Write(order));
            }
            result => flush.outcomes.push(Outcome::Wrote(order.then, result)),
        }
    }

    /// The next commit or read, or the outcomes if there is none.
    fn go_on(&mut self, mut flush: Flush) -> Progress {
        while self.stalled.is_some() && !flush.committing.is_empty() {
            self.settle_behind(&mut flush);
        }
        if let Some(order) = flush.committing.front() {
            let call = commit(vec![order.writes.clone()], order.durable, false);
            self.flush = Some(flush);
            return Progress::Call(call);
        }
        let reads_from = flush
            .rest
            .iter()
            .position(|order| matches!(order, Order::Read(..)));
        let reads = flush.rest.split_off(reads_from.unwrap_or(flush.rest.len()));
        let writes = std::mem::replace(&mut flush.rest, reads);
        flush
            .committing
            .extend(writes.into_iter().filter_map(|order| match order {
                Order::Write(order) => Some(order),
                Order::Read(..) => None,
            }));
        if self.stalled.is_some() && !flush.committing.is_empty() {
            return self.go_on(flush);
        }
        if !flush.committing.is_empty() {
            let writes = flush.committing.iter().map(|order| order.writes.clone());
            let durable = flush.committing.iter().any(|order| order.durable);
            let call = commit(writes.collect(), durable, flush.after_failure);
            flush.is_together = true;
            flush.after_failure = false;
            self.flush = Some(flush);
            return Progress::Call(call);
        }
        if let Some(Order::Read(query, then)) = flush.rest.pop_front() {
            flush.reading = Some(then);
            self.flush = Some(flush);
            return Progress::Call(Effect::Read(query));
        }
        flush.kept.append(&mut self.orders);
        self.orders = flush.kept;
        Progress::Done(flush.outcomes)
    }

    /// Settles a write behind one that failed: it is refused, or it keeps its place.
    fn settle_behind(&mut self, flush: &mut Flush) {
        if let Some(error) = self.stalled.as_ref().map(Error::again) {
            self.settle_first(flush, Err(error));
        }
    }
}

const fn commit(writes: Vec<Arc<[Write]>>, durable: bool, after_failure: bool) -> Effect {
    Effect::Commit {
        writes,
        durable,
        after_failure,
    }
}
