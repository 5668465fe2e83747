//! Queries the GPUs in the background, often enough to notice those that other users keep busy.

use super::{Daemon, Message, Replies};
use crate::machine::look_at_gpus;
use std::time::{Duration, Instant};
use towline_core::cluster::GpuFacts;
use towline_wire::daemon::Reply;

/// How old the facts about GPUs may be when a run gets one.
const GPU_LOOK_LIFETIME: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct GpuWatch {
    seen: Option<Instant>,
    looking: bool,
    /// Clients that asked for facts and wait for the query.
    waiting: Vec<Replies>,
}

impl GpuWatch {
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }
    fn is_fresh(&self) -> bool {
        self.seen
            .is_some_and(|seen| seen.elapsed() < GPU_LOOK_LIFETIME)
    }
}

impl Daemon {
    /// Whether the known facts are fresh enough to assign GPUs. If not, a query is started.
    pub(super) fn gpus_are_known(&mut self) -> bool {
        if self.machine.gpus.is_empty() || self.gpus.is_fresh() {
            return true;
        }
        if self.queue.waiting().any(|waiting| waiting.need.gpus > 0) {
            self.look();
        }
        false
    }

    pub(super) fn look_at_gpus_if_needed(&mut self) {
        if !self.machine.gpus.is_empty()
            && !self.gpus.is_fresh()
            && self.queue.waiting().any(|waiting| waiting.need.gpus > 0)
        {
            self.look();
        }
    }

    fn look(&mut self) {
        if self.gpus.looking {
            return;
        }
        self.gpus.looking = true;
        let (limits, inbox) = (self.machine.limits, self.inbox.clone());
        let looking = std::thread::Builder::new()
            .name("gpus".into())
            .spawn(move || {
                let found = look_at_gpus(limits, &is_ours);
                let _ = inbox.send(Message::GpusSeen(found));
            });
        if looking.is_err() {
            // No thread can be started, so this one does it. (Tokio's own `spawn_blocking` would
            // panic.)
            self.gpus_seen(look_at_gpus(limits, &is_ours));
        }
    }

    pub(super) fn gpus_seen(&mut self, found: Vec<GpuFacts>) {
        self.gpus.looking = false;
        self.gpus.seen = Some(Instant::now());
        self.machine.gpus = found;
        self.unsettled = true;
        let facts = self.machine_facts();
        for replies in self.gpus.waiting.drain(..) {
            let _ = replies.send(Reply::Facts(facts.clone()));
        }
    }

    pub(super) fn facts(&mut self, replies: Replies) {
        self.gpus.waiting.push(replies);
        self.look();
    }
}

/// Whether a process belongs to one of our runs: such a process has the run's id in its
/// environment.
fn is_ours(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
        bytes
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(b"TOW_RUN_ID="))
    })
}
