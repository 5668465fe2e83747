//! Batches the daemon's writes: they are queued one by one, and written into the history in one
//! transaction. There is no writer thread, because waking one would take longer than most writes.

use std::sync::Arc;
use towline_core::event::RunEvent;
use towline_core::plan::Plan;
use towline_core::state::RunState;
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{Batch, History, RunKey};

/// One write.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    /// A new submission. With an intent, its one run is about to start.
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

/// The result of a write.
#[derive(Debug, Clone)]
pub(crate) enum Written {
    /// The keys of the new runs; `None` if the history already had the submission.
    Submitted(Option<Vec<RunKey>>),
    Event(i64),
    Forgotten(bool),
    Nothing,
}

type Done<M> = Box<dyn FnOnce(Result<Vec<Written>>) -> M>;
type Reading<M> = Box<dyn FnOnce(&History) -> M>;

enum Order<M> {
    Write {
        writes: Vec<Write>,
        durable: bool,
        done: Done<M>,
    },
    Read(Reading<M>),
}

/// A queue of writes and reads, carried out together by `flush`. Each of them produces a message
/// `M` for the daemon.
pub(crate) struct Ledger<M> {
    history: History,
    orders: Vec<Order<M>>,
    /// Why the first write failed. It and all behind it are tried again later, in their order.
    stalled: Option<Error>,
    /// The daemon asked for a retry.
    retrying: bool,
}

type Group<M> = Vec<(Vec<Write>, bool, Done<M>)>;

impl<M> Ledger<M> {
    pub(crate) const fn new(history: History) -> Self {
        Self {
            history,
            orders: Vec::new(),
            stalled: None,
            retrying: false,
        }
    }

    pub(crate) const fn history(&self) -> &History {
        &self.history
    }

    /// Queues a write of all or nothing. With `durable` its message comes after it is on disk.
    pub(crate) fn write(
        &mut self,
        writes: Vec<Write>,
        durable: bool,
        done: impl FnOnce(Result<Vec<Written>>) -> M + 'static,
    ) {
        self.orders.push(Order::Write {
            writes,
            durable,
            done: Box::new(done),
        });
    }

    /// Queues a read, which sees every write queued before it.
    pub(crate) fn read(&mut self, reading: impl FnOnce(&History) -> M + 'static) {
        self.orders.push(Order::Read(Box::new(reading)));
    }

    /// Whether a flush would do something now.
    pub(crate) const fn has_work(&self) -> bool {
        !self.orders.is_empty() && (self.stalled.is_none() || self.retrying)
    }

    /// Whether nothing is queued.
    pub(crate) const fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Why nothing can be written at present.
    pub(crate) const fn stalled(&self) -> Option<&Error> {
        self.stalled.as_ref()
    }

    /// Lets a stalled ledger try again.
    pub(crate) const fn retry(&mut self) {
        self.retrying = true;
    }

    /// Carries out everything that is queued, in one transaction if possible.
    ///
    /// A write that fails and must not be lost keeps its place, and no write behind it is carried
    /// out, because a later write may depend on the earlier one (a journal is removed because its
    /// run's end is in the history). Submissions and removals behind it are refused with the same
    /// error. Reads are answered from what is written.
    pub(crate) fn flush(&mut self) -> Vec<M> {
        if self.stalled.take().is_some() {
            self.history.shrink_log();
        }
        self.retrying = false;
        let mut answers = Vec::new();
        let mut group = Vec::new();
        for order in std::mem::take(&mut self.orders) {
            match order {
                Order::Write {
                    writes,
                    durable,
                    done,
                } => group.push((writes, durable, done)),
                Order::Read(reading) => {
                    self.commit(std::mem::take(&mut group), &mut answers);
                    answers.push(reading(&self.history));
                }
            }
        }
        self.commit(group, &mut answers);
        answers
    }

    /// One transaction for the whole group. If that fails, one per write, up to the first that must
    /// not be lost.
    fn commit(&mut self, group: Group<M>, answers: &mut Vec<M>) {
        if group.is_empty() {
            return;
        }
        if self.stalled.is_none() {
            let durable = group.iter().any(|(_, durable, _)| *durable);
            let all: Vec<&Write> = group.iter().flat_map(|(writes, ..)| writes).collect();
            let written = apply(&self.history, &all, durable);
            // The write-ahead log itself may take the missing space.
            let written = if written.is_err() && self.history.shrink_log() {
                apply(&self.history, &all, durable)
            } else {
                written
            };
            if let Ok(mut results) = written {
                for (writes, _, done) in group {
                    let rest = results.split_off(writes.len());
                    answers.push(done(Ok(std::mem::replace(&mut results, rest))));
                }
                return;
            }
        }
        for (writes, durable, done) in group {
            let refusable = writes
                .iter()
                .any(|write| matches!(write, Write::Submit { .. } | Write::Forget { .. }));
            let result = match &self.stalled {
                Some(error) => Err(error.again()),
                None => apply(&self.history, &writes.iter().collect::<Vec<_>>(), durable),
            };
            match result {
                Err(error) if !refusable => {
                    self.stalled.get_or_insert(error);
                    self.orders.push(Order::Write {
                        writes,
                        durable,
                        done,
                    });
                }
                result => answers.push(done(result)),
            }
        }
    }
}

fn apply(history: &History, writes: &[&Write], durable: bool) -> Result<Vec<Written>> {
    let batch = history.batch(durable)?;
    let written = writes
        .iter()
        .map(|write| one(&batch, write))
        .collect::<Result<Vec<_>>>()?;
    batch.commit()?;
    Ok(written)
}

fn one(batch: &Batch<'_>, write: &Write) -> Result<Written> {
    match write {
        Write::Submit {
            plan,
            state,
            at,
            intent,
        } => {
            let keys = batch.submit(plan, state, *at)?;
            if let (Some([key]), Some(intent)) = (keys.as_deref(), intent) {
                batch.event(*key, &intent.0, &intent.1, *at)?;
            }
            Ok(Written::Submitted(keys))
        }
        Write::Event {
            key,
            event,
            state,
            at,
        } => batch.event(*key, event, state, *at).map(Written::Event),
        Write::Forget { run } => batch.forget(run).map(Written::Forgotten),
        Write::ForgetUnused => batch
            .forget_unused_environments()
            .map(|()| Written::Nothing),
    }
}
