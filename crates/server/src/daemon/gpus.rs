//! Queries the GPUs in the background, often enough to notice those that other users keep busy.

use super::{Daemon, Effect};
use std::time::Duration;
use towline_core::cluster::GpuFacts;
use towline_wire::daemon::Reply;

/// How old the facts about GPUs may be when a run gets one.
const GPU_LOOK_LIFETIME: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct GpuWatch {
    seen: Option<Duration>,
    is_looking: bool,
    /// Clients that asked for facts and wait for the query.
    waiting: Vec<u64>,
}

impl GpuWatch {
    pub(super) const fn forget(&mut self) {
        self.seen = None;
    }
    fn is_fresh(&self, now: Duration) -> bool {
        self.seen
            .is_some_and(|seen| now.saturating_sub(seen) < GPU_LOOK_LIFETIME)
    }
}

impl Daemon {
    /// Whether the known facts are fresh enough to assign GPUs. If not, a query is started.
    pub(super) fn gpus_are_known(&mut self) -> bool {
        let is_known = self.machine.gpus.is_empty() || self.gpus.is_fresh(self.now.steady);
        if !is_known {
            self.look_at_gpus_if_needed();
        }
        is_known
    }

    pub(super) fn look_at_gpus_if_needed(&mut self) {
        if !self.machine.gpus.is_empty()
            && !self.gpus.is_fresh(self.now.steady)
            && self.queue.waiting().any(|waiting| waiting.need.gpus > 0)
        {
            self.look_at_gpus();
        }
    }

    fn look_at_gpus(&mut self) {
        if !std::mem::replace(&mut self.gpus.is_looking, true) {
            self.effect(Effect::LookAtGpus(self.machine.limits));
        }
    }

    pub(super) fn gpus_seen(&mut self, found: Vec<GpuFacts>) {
        self.gpus.is_looking = false;
        self.gpus.seen = Some(self.now.steady);
        self.machine.gpus = found;
        self.unsettled = true;
        let facts = self.machine_facts();
        for connection in std::mem::take(&mut self.gpus.waiting) {
            self.reply(connection, Reply::Facts(facts.clone()));
        }
    }

    pub(super) fn facts(&mut self, connection: u64) {
        self.gpus.waiting.push(connection);
        self.look_at_gpus();
    }
}
