//! The thread of a far cluster: the shipped worker, and calls that each are a step of their own.

use crate::cluster::LISTING_DELAY;
use crate::plans::cluster_name;
use crate::world::{CLUSTERS, World};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use towline_core::cluster::{Explanation, RunRef};
use towline_core::{Error, Result};
use towline_server::daemon::{Input, Order};
use towline_server::worker::{About, Call, CallAnswer, Worker, WorkerEffect, WorkerInput};

/// How many bytes of a log one call brings.
const LOG_BATCH_BYTES: u64 = 3;
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    value: Worker,
    began: Duration,
    effects: VecDeque<WorkerEffect>,
    answer: Option<CallAnswer>,
    pub(crate) orders: VecDeque<Order>,
    wakes_at: Duration,
    /// It has looked for work since its last order.
    has_woken: bool,
}

impl WorkerProcess {
    pub(crate) fn is_at_rest(&self, now: Duration) -> bool {
        self.effects.is_empty()
            && self.answer.is_none()
            && self.orders.is_empty()
            && now < self.wakes_at
    }
}

impl World {
    /// Sends an order to a cluster's thread, and starts the thread if there is none.
    pub(crate) fn order(&mut self, cluster: &str, order: Order) {
        let now = self.now;
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let about = About {
            watches: false,
            listing_delay: LISTING_DELAY,
        };
        let new = || WorkerProcess {
            value: Worker::new(about, Duration::ZERO),
            began: now,
            effects: VecDeque::new(),
            answer: None,
            orders: VecDeque::new(),
            wakes_at: now,
            has_woken: false,
        };
        let name = cluster.to_owned();
        let worker = daemon.workers.entry(name).or_insert_with(new);
        worker.orders.push_back(order);
    }

    /// The next small step of a cluster's thread: an effect, an answer, an order, or a round.
    pub(crate) fn worker_step(&mut self, cluster: usize) {
        let cluster = cluster % CLUSTERS;
        let name = cluster_name(cluster + 1);
        let now = self.now;
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let Some(worker) = daemon.workers.get_mut(&name) else {
            return;
        };
        if let Some(effect) = worker.effects.pop_front() {
            self.carry_out_worker(cluster, effect);
            return self.rest_worker(&name);
        }
        let input = if let Some(answer) = worker.answer.take() {
            WorkerInput::Answer(answer)
        } else if let Some(order) = worker.orders.pop_front() {
            if worker.orders.is_empty() {
                worker.wakes_at = now;
            }
            WorkerInput::Order(order)
        } else if worker.wakes_at <= now {
            worker.has_woken = true;
            WorkerInput::Wake
        } else {
            return;
        };
        let steady = now.saturating_sub(worker.began);
        worker.effects.extend(worker.value.step(input, steady));
        self.rest_worker(&name);
    }

    /// A thread with nothing to do sleeps for as long as its worker says.
    fn rest_worker(&mut self, name: &str) {
        let now = self.now;
        let daemon = self.daemon.as_mut();
        if let Some(worker) = daemon.and_then(|daemon| daemon.workers.get_mut(name))
            && worker.effects.is_empty()
            && worker.answer.is_none()
            && worker.orders.is_empty()
            && worker.has_woken
        {
            worker.has_woken = false;
            worker.wakes_at = now + worker.value.wait();
        }
    }

    fn carry_out_worker(&mut self, cluster: usize, effect: WorkerEffect) {
        self.note(|| format!("worker -> {}", crate::daemon::shortened(&effect)));
        match effect {
            WorkerEffect::Call(call) => {
                let answer = self.call_cluster(cluster, call);
                let name = cluster_name(cluster + 1);
                let daemon = self.daemon.as_mut();
                if let Some(worker) = daemon.and_then(|daemon| daemon.workers.get_mut(&name)) {
                    worker.answer = Some(answer);
                }
            }
            WorkerEffect::Tell(report) => {
                let cluster = cluster_name(cluster + 1);
                self.tell_daemon(Input::Far { cluster, report });
            }
            WorkerEffect::Status(_) | WorkerEffect::HangUp | WorkerEffect::Pass(_) => {}
        }
    }

    fn call_cluster(&mut self, which: usize, call: Call) -> CallAnswer {
        let now = self.wall();
        let disk_is_full = self.disk_is_full;
        let logs = &mut self.logs;
        let cluster = &mut self.clusters[which];
        cluster.now = self.now;
        match call {
            Call::Stage(_) => CallAnswer::Staged(cluster.reach(|_| Ok(()))),
            Call::Submit(plan) => {
                CallAnswer::Submitted(cluster.reach(|cluster| cluster.submit(&plan, now)))
            }
            Call::GiveUp(_) => CallAnswer::GaveUp(cluster.reach(|_| Ok(()))),
            Call::Observe { runs, depth } => CallAnswer::Observed {
                observed: cluster.reach(|cluster| Ok(cluster.observe(&runs, depth, now))),
                pages: HashMap::new(),
            },
            Call::Cancel { runs } => CallAnswer::Cancelled(cluster.reach(|cluster| {
                cluster.cancel(&runs, now);
                Ok(Vec::new())
            })),
            Call::BringLogs(run) => CallAnswer::BroughtLogs(cluster.reach(|cluster| {
                let printed = cluster.jobs.get(&run.run).map_or(0, |job| job.printed);
                bring(logs, &run, printed, disk_is_full)
            })),
            Call::Explain(_) => CallAnswer::Explained(cluster.reach(|_| {
                Ok(Explanation {
                    native: None,
                    text: "it waits".to_owned(),
                    next: None,
                    forever: false,
                })
            })),
            Call::Change { runs, change } => {
                CallAnswer::Changed(cluster.reach(|cluster| Ok(cluster.change(&runs, &change))))
            }
            Call::Forget { runs } => {
                for run in runs {
                    let job = cluster.jobs.get(&run.run);
                    if job.is_some_and(|job| !job.is_over) {
                        let what = format!("the files of {} are removed while it goes on", run.run);
                        self.facts.break_promise(what);
                    }
                }
                CallAnswer::Forgot
            }
        }
    }
}

/// Appends some of the new bytes of a log to the copy on this machine.
fn bring(
    logs: &mut std::collections::BTreeMap<towline_core::RunId, u64>,
    run: &RunRef,
    printed: u64,
    disk_is_full: bool,
) -> Result<bool> {
    let have = logs.entry(run.run.clone()).or_default();
    if *have < printed && disk_is_full {
        return Err(Error::refused("the logs cannot be stored on this machine"));
    }
    *have = printed.min(*have + LOG_BATCH_BYTES);
    Ok(*have == printed)
}
