//! The local scheduler: pure, one call, one decision.
//!
//! Order: tier, then submission. A run that fits starts. The first run that does not fit is the
//! *head*. `basic` runs may be preempted for it. A run behind it may start only if that cannot
//! delay the head: either it ends by its own limit before the head can start, or it leaves the head
//! enough. A run without a limit counts as endless. While the head waits for an endless run, which
//! may end at any moment, a run may pass the head only if it leaves the head enough right now.

use std::collections::BTreeSet;
use towline_backends::local::render::Need;
use towline_core::job::Tier;

/// What the machine has to hand out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capacity {
    pub cpus: u32,
    pub memory: u64,
    /// Indices of GPUs that no other user keeps busy.
    pub gpus: BTreeSet<u32>,
}

/// A run that waits. `key` grows with every submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub key: i64,
    pub tier: Tier,
    pub need: Need,
    /// Its time limit in milliseconds.
    pub limit: Option<u64>,
}

/// A run that holds a part of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    pub key: i64,
    pub tier: Tier,
    pub need: Need,
    pub gpus: BTreeSet<u32>,
    /// When it ends at the latest, in milliseconds; none if it has no limit.
    pub ends_at: Option<u64>,
    /// It is ending already: cancelled by the user, or preempted.
    pub leaving: bool,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Runs to start, with the GPUs they get.
    pub start: Vec<(i64, BTreeSet<u32>)>,
    /// Runs to preempt for the head.
    pub preempt: Vec<i64>,
}

/// Free amounts. Which GPUs they are is decided elsewhere.
#[derive(Debug, Clone, Copy)]
struct Free {
    cpus: u32,
    memory: u64,
    gpus: u32,
}

impl Free {
    const fn fits(&self, need: &Need) -> bool {
        need.cpus <= self.cpus && need.memory <= self.memory && need.gpus <= self.gpus
    }
    const fn take(&mut self, need: &Need) {
        self.cpus = self.cpus.saturating_sub(need.cpus);
        self.memory = self.memory.saturating_sub(need.memory);
        self.gpus = self.gpus.saturating_sub(need.gpus);
    }
    const fn give(&mut self, need: &Need) {
        self.cpus += need.cpus;
        self.memory += need.memory;
        self.gpus += need.gpus;
    }
    /// Whether `need` can be taken and the head's need still fits, in every resource that both
    /// need.
    const fn leaves(&self, need: &Need, head: &Need) -> bool {
        (need.cpus == 0 || need.cpus + head.cpus <= self.cpus)
            && (need.memory == 0 || need.memory + head.memory <= self.memory)
            && (need.gpus == 0 || need.gpus + head.gpus <= self.gpus)
    }
}

/// The first run that does not fit, and when it could start.
struct Head<'w> {
    waiting: &'w Waiting,
    /// When it can start at the latest, if every run keeps its limit; `None` while it waits for an
    /// endless run.
    shadow: Option<u64>,
    /// What is free beside it then.
    spare: Free,
}

/// Decides about `waiting`, which is in scheduling order (tier, then key).
pub fn decide<'w>(
    capacity: &Capacity,
    waiting: impl IntoIterator<Item = &'w Waiting>,
    holding: &[Holding],
    now: u64,
) -> Decision {
    let mut free_gpus = capacity.gpus.clone();
    let gpus_total = u32::try_from(capacity.gpus.len()).unwrap_or(u32::MAX);
    let mut free = Free {
        cpus: capacity.cpus,
        memory: capacity.memory,
        gpus: gpus_total,
    };
    for run in holding {
        free.take(&run.need);
        free_gpus.retain(|gpu| !run.gpus.contains(gpu));
    }
    free.gpus = u32::try_from(free_gpus.len()).unwrap_or(u32::MAX);

    let mut decision = Decision::default();
    let mut started: Vec<(Need, Option<u64>)> = Vec::new();
    let mut head: Option<Head<'_>> = None;
    for run in waiting {
        if free.cpus == 0 && head.is_some() {
            break;
        }
        let fits = free.fits(&run.need);
        let may_start = match &mut head {
            None => fits,
            Some(head) => fits && may_pass(run, head, &free, now),
        };
        if may_start {
            free.take(&run.need);
            let gpus: BTreeSet<u32> = free_gpus
                .iter()
                .copied()
                .take(run.need.gpus as usize)
                .collect();
            free_gpus.retain(|gpu| !gpus.contains(gpu));
            decision.start.push((run.key, gpus));
            started.push((run.need, run.limit.map(|limit| now + limit)));
        } else if head.is_none() {
            decision.preempt = victims(run, &free, holding);
            head = Some(reserve(run, free, holding, &started));
        }
    }
    decision
}

fn may_pass(run: &Waiting, head: &mut Head<'_>, free: &Free, now: u64) -> bool {
    let ends_before = head
        .shadow
        .is_some_and(|shadow| run.limit.is_some_and(|limit| now + limit <= shadow));
    let beside = free.leaves(&run.need, &head.waiting.need)
        || (head.shadow.is_some() && head.spare.fits(&run.need));
    if beside && !ends_before {
        head.spare.take(&run.need);
    }
    ends_before || beside
}

/// When the head can start, if every run ends by its limit.
fn reserve<'w>(
    head: &'w Waiting,
    free: Free,
    holding: &[Holding],
    started: &[(Need, Option<u64>)],
) -> Head<'w> {
    let running = holding.iter().map(|run| (run.need, run.ends_at));
    let mut ends: Vec<(u64, Need)> = running
        .chain(started.iter().copied())
        .filter_map(|(need, end)| end.map(|end| (end, need)))
        .collect();
    ends.sort_by_key(|(end, _)| *end);
    let mut then = free;
    for (index, (end, need)) in ends.iter().enumerate() {
        then.give(need);
        if then.fits(&head.need) {
            // Runs that end at the same moment free their parts as well.
            let mut spare = then;
            ends[index + 1..]
                .iter()
                .take_while(|(other, _)| other == end)
                .for_each(|(_, other)| spare.give(other));
            spare.take(&head.need);
            return Head {
                waiting: head,
                shadow: Some(*end),
                spare,
            };
        }
    }
    Head {
        waiting: head,
        shadow: None,
        spare: Free {
            cpus: 0,
            memory: 0,
            gpus: 0,
        },
    }
}

/// The `basic` runs whose end makes room for `head`, newest first, and no more than are needed.
fn victims(head: &Waiting, free: &Free, holding: &[Holding]) -> Vec<i64> {
    if head.tier == Tier::Basic {
        return Vec::new();
    }
    let mut then = *free;
    holding
        .iter()
        .filter(|run| run.leaving)
        .for_each(|run| then.give(&run.need));
    let mut candidates: Vec<&Holding> = holding
        .iter()
        .filter(|run| run.tier == Tier::Basic && !run.leaving)
        .collect();
    candidates.sort_by_key(|run| std::cmp::Reverse(run.key));
    let mut chosen: Vec<&Holding> = Vec::new();
    for run in candidates {
        if then.fits(&head.need) {
            break;
        }
        then.give(&run.need);
        chosen.push(run);
    }
    if !then.fits(&head.need) {
        return Vec::new();
    }
    // A run that is not needed after all is spared.
    let mut index = 0;
    while index < chosen.len() {
        let mut without = then;
        without.take(&chosen[index].need);
        if without.fits(&head.need) {
            then = without;
            chosen.remove(index);
        } else {
            index += 1;
        }
    }
    chosen.into_iter().map(|run| run.key).collect()
}
