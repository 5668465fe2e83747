//! The history's thread: takes writes, puts whatever has come in one transaction, tells when it
//! is done. Reads for the daemon go the same way, so that there is one connection.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use towline_core::event::RunEvent;
use towline_core::plan::Plan;
use towline_core::state::RunState;
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{Batch, History, RunKey};

/// One thing to write.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    /// With an intent, the submission's one run is about to start.
    Submit {
        plan: Arc<Plan>,
        state: RunState,
        at: Moment,
        intent: Option<Box<(RunEvent, RunState)>>,
    },
    Event {
        key: RunKey,
        event: RunEvent,
        state: RunState,
        at: Moment,
    },
    Forget {
        run: RunId,
    },
    ForgetUnused,
}

/// What a write gave.
#[derive(Debug, Clone)]
pub(crate) enum Written {
    /// The keys of the new runs; `None` when the submission was there already.
    Submitted(Option<Vec<RunKey>>),
    Event(i64),
    Forgotten(bool),
    Nothing,
}

type Done<M> = Box<dyn FnOnce(Result<Vec<Written>>) -> M + Send>;
type Reading<M> = Box<dyn FnOnce(&History) -> M + Send>;

enum Order<M> {
    Write { writes: Vec<Write>, durable: bool, done: Done<M> },
    Read(Reading<M>),
}

/// The sending end. Answers arrive as messages `M` of the daemon.
pub(crate) struct Ledger<M> {
    orders: Sender<Order<M>>,
}

impl<M: Send + 'static> Ledger<M> {
    pub(crate) fn start(history: History, answers: UnboundedSender<M>) -> (Self, std::thread::JoinHandle<()>) {
        let (orders, receiver) = channel();
        let thread = std::thread::spawn(move || serve(&history, &receiver, &answers));
        (Self { orders }, thread)
    }

    /// A ledger that takes orders and has nobody to carry them out yet: for building the daemon.
    pub(crate) fn unstarted() -> Self {
        Self { orders: channel().0 }
    }

    /// Writes all or nothing; with `durable` the answer comes when it is on disk.
    pub(crate) fn write(&self, writes: Vec<Write>, durable: bool, done: impl FnOnce(Result<Vec<Written>>) -> M + Send + 'static) {
        let _ = self.orders.send(Order::Write { writes, durable, done: Box::new(done) });
    }

    pub(crate) fn read(&self, reading: impl FnOnce(&History) -> M + Send + 'static) {
        let _ = self.orders.send(Order::Read(Box::new(reading)));
    }
}

fn serve<M>(history: &History, orders: &Receiver<Order<M>>, answers: &UnboundedSender<M>) {
    while let Ok(first) = orders.recv() {
        let mut pending = vec![first];
        pending.extend(orders.try_iter());
        let mut group = Vec::new();
        for order in pending {
            match order {
                Order::Write { writes, durable, done } => group.push((writes, durable, done)),
                Order::Read(reading) => {
                    // A read sees every write that was ordered before it.
                    commit(history, std::mem::take(&mut group), answers);
                    let _ = answers.send(reading(history));
                }
            }
        }
        commit(history, group, answers);
    }
}

type Group<M> = Vec<(Vec<Write>, bool, Done<M>)>;

/// One transaction for the whole group; when that fails, one each, so that a full disk refuses
/// new submissions and the rest is tried until it is written.
fn commit<M>(history: &History, group: Group<M>, answers: &UnboundedSender<M>) {
    if group.is_empty() {
        return;
    }
    let durable = group.iter().any(|(_, durable, _)| *durable);
    let all: Vec<&Write> = group.iter().flat_map(|(writes, ..)| writes).collect();
    if let Ok(mut results) = apply(history, &all, durable) {
        for (writes, _, done) in group {
            let rest = results.split_off(writes.len());
            let _ = answers.send(done(Ok(std::mem::replace(&mut results, rest))));
        }
        return;
    }
    for (writes, durable, done) in group {
        let result = persist(history, &writes, durable);
        let _ = answers.send(done(result));
    }
}

fn persist(history: &History, writes: &[Write], durable: bool) -> Result<Vec<Written>> {
    let refusable = writes.iter().any(|write| matches!(write, Write::Submit { .. } | Write::Forget { .. }));
    let all: Vec<&Write> = writes.iter().collect();
    let mut last: Option<Error> = None;
    for pause in [0, 50, 200, 1000, 1000, 1000, 5000, 5000, 5000] {
        std::thread::sleep(Duration::from_millis(pause));
        match apply(history, &all, durable) {
            Ok(written) => return Ok(written),
            Err(error) if refusable => return Err(error),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| Error::bug("nothing was tried")))
}

fn apply(history: &History, writes: &[&Write], durable: bool) -> Result<Vec<Written>> {
    let batch = history.batch(durable)?;
    let written = writes.iter().map(|write| one(&batch, write)).collect::<Result<Vec<_>>>()?;
    batch.commit()?;
    Ok(written)
}

fn one(batch: &Batch<'_>, write: &Write) -> Result<Written> {
    match write {
        Write::Submit { plan, state, at, intent } => {
            let keys = batch.submit(plan, state, *at)?;
            if let (Some([key]), Some(intent)) = (keys.as_deref(), intent) {
                batch.event(*key, &intent.0, &intent.1, *at)?;
            }
            Ok(Written::Submitted(keys))
        }
        Write::Event { key, event, state, at } => batch.event(*key, event, state, *at).map(Written::Event),
        Write::Forget { run } => batch.forget(run).map(Written::Forgotten),
        Write::ForgetUnused => batch.forget_unused_environments().map(|()| Written::Nothing),
    }
}
