//! The thread of one far cluster: it holds one connection, and carries out what its worker decides.
//! It never writes the history; it sends messages to the daemon.

use super::super::Message;
use super::status::Status;
use super::{ToThread, logs, stage};
use crate::daemon::{Order, Report};
use crate::worker::{About, Call, CallAnswer, StatusNote, Worker, WorkerEffect, WorkerInput};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use towline_core::RunId;
use towline_core::cluster::{Cluster, Depth, RunRef};
use towline_core::redact::SecretSet;
use towline_host::crash;
use towline_wire::layout::StateFolder;

pub(super) struct Thread {
    pub(super) cluster: String,
    pub(super) backend: Arc<dyn Cluster>,
    pub(super) state: StateFolder,
    pub(super) orders: Receiver<ToThread>,
    pub(super) inbox: UnboundedSender<Message>,
    pub(super) status: Status,
    pub(super) began: Instant,
    /// The secrets of submissions that the cluster has not answered yet.
    pub(super) secrets: HashMap<RunId, SecretSet>,
}

impl Thread {
    pub(super) fn serve(mut self) {
        let about = About {
            watches: self.backend.caps().watches,
            listing_delay: self.backend.listing_delay(),
        };
        let mut worker = Worker::new(about, self.now());
        loop {
            match self.orders.recv_timeout(worker.wait()) {
                Ok(ToThread::Leave) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(message) => {
                    self.hear(message, &mut worker);
                    while let Ok(message) = self.orders.try_recv() {
                        self.hear(message, &mut worker);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.step(&mut worker, WorkerInput::Wake);
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn hear(&mut self, message: ToThread, worker: &mut Worker) {
        let input = match message {
            ToThread::Order { order, secrets } => {
                if let Order::Submit { plan, .. } = &order {
                    self.secrets.insert(plan.id.clone(), secrets);
                }
                WorkerInput::Order(order)
            }
            ToThread::Changed => WorkerInput::Changed,
            ToThread::Leave => return,
        };
        self.step(worker, input);
    }

    /// Carries out what follows from an input, until no call is left to answer.
    fn step(&mut self, worker: &mut Worker, input: WorkerInput) {
        let mut input = Some(input);
        while let Some(next) = input.take() {
            for effect in worker.step(next, self.now()) {
                match effect {
                    WorkerEffect::Call(call) => {
                        input = Some(WorkerInput::Answer(self.call(call)));
                    }
                    WorkerEffect::Tell(report) => self.tell(report),
                    WorkerEffect::Status(note) => self.note(&note),
                    WorkerEffect::HangUp => {
                        if self.backend.is_open() {
                            self.backend.hang_up();
                        }
                    }
                    WorkerEffect::Pass(point) => crash::pass(point),
                }
            }
        }
    }

    fn call(&self, call: Call) -> CallAnswer {
        let backend = self.backend.as_ref();
        match call {
            Call::Stage(plan) => CallAnswer::Staged(stage::stage(backend, &self.state, &plan)),
            Call::Submit(plan) => {
                let none = SecretSet::default();
                let secrets = self.secrets.get(&plan.id).unwrap_or(&none);
                CallAnswer::Submitted(backend.submit(&plan, secrets))
            }
            Call::GiveUp(plan) => CallAnswer::GaveUp(backend.give_up(&plan)),
            Call::Observe { runs, depth } => CallAnswer::Observed {
                observed: backend.observe(&runs, depth),
                pages: self.pages(&runs, depth),
            },
            Call::Cancel { runs } => CallAnswer::Cancelled(backend.cancel(&runs)),
            Call::BringLogs(run) => {
                CallAnswer::BroughtLogs(logs::bring(backend, &self.state, &run))
            }
            Call::Explain(run) => CallAnswer::Explained(backend.explain(&run)),
            Call::Change { runs, change } => CallAnswer::Changed(backend.change(&runs, &change)),
            Call::Forget { runs } => {
                let _ = backend.forget(&runs);
                CallAnswer::Forgot
            }
        }
    }

    /// The cluster's web pages of runs. Its scheduler names them itself.
    fn pages(&self, runs: &[RunRef], depth: Depth) -> HashMap<String, String> {
        let names = runs.iter().filter_map(|run| run.native.clone());
        match depth {
            Depth::Scheduler => HashMap::new(),
            Depth::Records => names
                .filter_map(|name| {
                    let page = self.backend.web_page(&name)?;
                    Some((name, page))
                })
                .collect(),
        }
    }

    fn tell(&mut self, report: Report) {
        match &report {
            Report::Submitted { submission, .. } => drop(self.secrets.remove(submission)),
            Report::Withdrawn { runs } => runs.iter().for_each(|run| {
                self.secrets.remove(run);
            }),
            _ => {}
        }
        let _ = self.inbox.send(super::report(&self.cluster, report));
    }

    fn note(&self, note: &StatusNote) {
        match note {
            StatusNote::Waits => self.status.waits(),
            StatusNote::WaitsNoMore => self.status.waits_no_more(),
            StatusNote::Seen => self.status.seen(),
            StatusNote::Trouble { why, hints } => self.status.trouble(why, hints),
        }
    }
}
