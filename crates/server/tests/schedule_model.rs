//! The scheduler against a simple reference, over random traces.
//!
//! The reference is written for the reader: it lists everything, recomputes everything, and knows
//! the rules only as sentences. Both must decide the same at every step of every trace. Beside
//! that, what the rules are for: the machine is never overcommitted, a head is never delayed by
//! what passes it, and within a tier nobody who needs the same overtakes.
#![allow(clippy::unwrap_used, clippy::too_many_lines)]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use towline_backends::local::render::Need;
use towline_core::job::Tier;
use towline_server::schedule::{Capacity, Decision, Holding, Waiting, decide};

#[derive(Debug, Clone)]
struct Job {
    arrives: u64,
    tier: Tier,
    need: Need,
    limit: Option<u64>,
    /// How long it really takes; never more than its limit.
    takes: u64,
}

const CPUS: u32 = 6;
const MEMORY: u64 = 100;
const GPUS: u32 = 3;

fn any_job() -> impl Strategy<Value = Job> {
    let tier = prop_oneof![
        Just(Tier::Basic),
        Just(Tier::Standard),
        Just(Tier::Standard),
        Just(Tier::Premium)
    ];
    (
        0u64..40,
        tier,
        1u32..=CPUS,
        prop_oneof![Just(0u64), 1..=MEMORY],
        prop_oneof![Just(0u32), 1..=GPUS],
        prop::option::of(1u64..30),
        1u64..30,
    )
        .prop_map(|(arrives, tier, cpus, memory, gpus, limit, takes)| Job {
            arrives,
            tier,
            need: Need { cpus, memory, gpus },
            limit,
            takes: limit.map_or(takes, |limit| takes.min(limit)),
        })
}

fn capacity() -> Capacity {
    Capacity {
        cpus: CPUS,
        memory: MEMORY,
        gpus: (0..GPUS).collect(),
    }
}

type Amounts = [i64; 3];

fn amounts(need: &Need) -> Amounts {
    [
        i64::from(need.cpus),
        i64::try_from(need.memory).unwrap(),
        i64::from(need.gpus),
    ]
}
fn minus(one: Amounts, other: Amounts) -> Amounts {
    [one[0] - other[0], one[1] - other[1], one[2] - other[2]]
}
fn plus(one: Amounts, other: Amounts) -> Amounts {
    [one[0] + other[0], one[1] + other[1], one[2] + other[2]]
}
fn covers(have: Amounts, want: Amounts) -> bool {
    (0..3).all(|kind| want[kind] <= have[kind])
}

/// The rules, as sentences.
fn reference(waiting: &[Waiting], holding: &[Holding], now: u64) -> (Vec<i64>, Vec<i64>) {
    let everything: Amounts = [
        i64::from(CPUS),
        i64::try_from(MEMORY).unwrap(),
        i64::from(GPUS),
    ];
    let mut running: Vec<(Amounts, Option<u64>)> = holding
        .iter()
        .map(|run| (amounts(&run.need), run.ends_at))
        .collect();
    let free = |running: &[(Amounts, Option<u64>)]| {
        running
            .iter()
            .fold(everything, |left, (need, _)| minus(left, *need))
    };
    let mut starts = Vec::new();
    let mut evicted = Vec::new();
    let mut head: Option<&Waiting> = None;
    // Running at the moment the head was found blocked; the plan for the head is made from these.
    let mut at_block: Vec<(Amounts, Option<u64>)> = Vec::new();
    let mut passed_for_ever: Amounts = [0; 3];
    for run in waiting {
        let need = amounts(&run.need);
        let fits = covers(free(&running), need);
        let Some(blocked) = head else {
            if fits {
                starts.push(run.key);
                running.push((need, run.limit.map(|limit| now + limit)));
            } else {
                head = Some(run);
                at_block.clone_from(&running);
                evicted = reference_victims(run, free(&running), holding);
            }
            continue;
        };
        if !fits {
            continue;
        }
        let wanted = amounts(&blocked.need);
        // "It leaves the head what it needs already now, wherever the two want the same."
        let have = free(&running);
        let beside_now =
            (0..3).all(|kind| need[kind] == 0 || need[kind] + wanted[kind] <= have[kind]);
        // When could the head start if everybody kept to the limit?
        let mut ends: Vec<u64> = at_block.iter().filter_map(|(_, end)| *end).collect();
        ends.sort_unstable();
        let free_at = |moment: u64| {
            at_block
                .iter()
                .filter(|(_, end)| end.is_none_or(|end| end > moment))
                .fold(everything, |left, (need, _)| minus(left, *need))
        };
        let shadow = ends
            .into_iter()
            .find(|moment| covers(free_at(*moment), wanted));
        let ends_before =
            shadow.is_some_and(|shadow| run.limit.is_some_and(|limit| now + limit <= shadow));
        let beside_then = shadow.is_some_and(|shadow| {
            covers(minus(minus(free_at(shadow), wanted), passed_for_ever), need)
        });
        if ends_before || beside_now || beside_then {
            starts.push(run.key);
            running.push((need, run.limit.map(|limit| now + limit)));
            if !ends_before {
                passed_for_ever = plus(passed_for_ever, need);
            }
        }
    }
    (starts, evicted)
}

/// The newest basic runs whose going makes room, without those that need not go.
fn reference_victims(head: &Waiting, free: Amounts, holding: &[Holding]) -> Vec<i64> {
    if head.tier == Tier::Basic {
        return Vec::new();
    }
    let want = amounts(&head.need);
    let going: Amounts = holding
        .iter()
        .filter(|run| run.leaving)
        .fold([0; 3], |sum, run| plus(sum, amounts(&run.need)));
    let soon = plus(free, going);
    let mut basic: Vec<&Holding> = holding
        .iter()
        .filter(|run| run.tier == Tier::Basic && !run.leaving)
        .collect();
    basic.sort_by_key(|run| -run.key);
    let room = |chosen: &[&Holding]| {
        chosen
            .iter()
            .fold(soon, |sum, run| plus(sum, amounts(&run.need)))
    };
    let Some(count) = (0..=basic.len()).find(|count| covers(room(&basic[..*count]), want)) else {
        return Vec::new();
    };
    let mut chosen = basic[..count].to_vec();
    for run in &basic[..count] {
        let without: Vec<&Holding> = chosen
            .iter()
            .copied()
            .filter(|other| other.key != run.key)
            .collect();
        if covers(room(&without), want) {
            chosen = without;
        }
    }
    chosen.into_iter().map(|run| run.key).collect()
}

/// A small world: jobs arrive, run, are preempted and end, in whole units of time.
struct World {
    jobs: BTreeMap<i64, Job>,
    waiting: BTreeSet<i64>,
    running: BTreeMap<i64, (u64, BTreeSet<u32>, bool)>,
    begun: BTreeMap<i64, u64>,
    over: BTreeSet<i64>,
}

impl World {
    fn new(jobs: &[Job]) -> Self {
        let jobs = (1i64..).zip(jobs.iter().cloned()).collect();
        Self {
            jobs,
            waiting: BTreeSet::new(),
            running: BTreeMap::new(),
            begun: BTreeMap::new(),
            over: BTreeSet::new(),
        }
    }

    fn queue(&self) -> Vec<Waiting> {
        let mut queue: Vec<Waiting> = self
            .waiting
            .iter()
            .map(|key| (*key, &self.jobs[key]))
            .map(|(key, job)| Waiting {
                key,
                tier: job.tier,
                need: job.need,
                limit: job.limit,
            })
            .collect();
        queue.sort_by_key(|run| (std::cmp::Reverse(run.tier), run.key));
        queue
    }

    fn holding(&self, now: u64) -> Vec<Holding> {
        self.running
            .iter()
            .map(|(key, (start, gpus, leaving))| {
                let job = &self.jobs[key];
                let ends_at = if *leaving {
                    Some(now + 1)
                } else {
                    job.limit.map(|limit| (start + limit).max(now))
                };
                Holding {
                    key: *key,
                    tier: job.tier,
                    need: job.need,
                    gpus: gpus.clone(),
                    ends_at,
                    leaving: *leaving,
                }
            })
            .collect()
    }

    fn step(&mut self, now: u64) {
        let ended: Vec<i64> = self
            .running
            .iter()
            .filter(|(key, (start, _, leaving))| *leaving || now >= start + self.jobs[*key].takes)
            .map(|(key, _)| *key)
            .collect();
        for key in ended {
            let (start, _, leaving) = self.running.remove(&key).unwrap();
            if leaving && now < start + self.jobs[&key].takes {
                self.waiting.insert(key);
            } else {
                self.over.insert(key);
            }
        }
        let arrived: Vec<i64> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.arrives == now)
            .map(|(key, _)| *key)
            .collect();
        self.waiting.extend(arrived);
    }

    fn carry_out(&mut self, decision: &Decision, now: u64) {
        for (key, gpus) in &decision.start {
            assert!(self.waiting.remove(key), "started what does not wait");
            assert_eq!(gpus.len(), self.jobs[key].need.gpus as usize);
            for (_, taken, _) in self.running.values() {
                assert!(taken.is_disjoint(gpus), "a GPU was given twice");
            }
            self.running.insert(*key, (now, gpus.clone(), false));
            self.begun.entry(*key).or_insert(now);
        }
        let used = self
            .running
            .keys()
            .fold([0; 3], |sum, key| plus(sum, amounts(&self.jobs[key].need)));
        assert!(
            covers(
                [
                    i64::from(CPUS),
                    i64::try_from(MEMORY).unwrap(),
                    i64::from(GPUS)
                ],
                used
            ),
            "overcommitted: {used:?}"
        );
        for key in &decision.preempt {
            let victim = self.running.get_mut(key).unwrap();
            assert_eq!(self.jobs[key].tier, Tier::Basic, "only basic gives way");
            victim.2 = true;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_scheduler_decides_as_the_reference_does(jobs in prop::collection::vec(any_job(), 1..40)) {
        let mut world = World::new(&jobs);
        for now in 0..5_000 {
            world.step(now);
            let (queue, holding) = (world.queue(), world.holding(now));
            let decision = decide(&capacity(), &queue, &holding, now);
            let (starts, evicted) = reference(&queue, &holding, now);
            prop_assert_eq!(decision.start.iter().map(|(key, _)| *key).collect::<Vec<_>>(), starts, "at {}", now);
            prop_assert_eq!(&decision.preempt, &evicted, "at {}", now);
            world.carry_out(&decision, now);
            if world.over.len() == jobs.len() {
                return Ok(());
            }
        }
        prop_assert!(false, "some run never came to its turn: {:?}", world.waiting);
    }

    /// One tier; limits are kept to the letter, or nobody has one and each ends when it likes:
    /// nobody who is head ever starts later because others passed it. (Where some have limits and
    /// some have none, the head keeps the moment that the limits promise it.)
    #[test]
    fn a_head_is_never_delayed(jobs in prop::collection::vec(any_job(), 2..25), limited: bool) {
        let limit = |job: &Job| limited.then(|| job.limit.unwrap_or(job.takes));
        let jobs: Vec<Job> = jobs.into_iter().map(|job| Job { arrives: 0, tier: Tier::Standard, takes: limit(&job).unwrap_or(job.takes), limit: limit(&job), ..job }).collect();
        let mut world = World::new(&jobs);
        for now in 0..2_000 {
            world.step(now);
            let (queue, holding) = (world.queue(), world.holding(now));
            let decision = decide(&capacity(), &queue, &holding, now);
            let started: BTreeSet<i64> = decision.start.iter().map(|(key, _)| *key).collect();
            if let Some(head) = queue.iter().find(|run| !started.contains(&run.key)) {
                // Without those that passed it: when would the head start, if all kept to what they
                // declared or took?
                let passing: BTreeSet<i64> = started.iter().copied().filter(|key| *key > head.key).collect();
                let earliest = |with_passing: bool| {
                    let mut ends: Vec<(u64, Amounts)> = holding.iter().map(|run| (world.running[&run.key].0 + world.jobs[&run.key].takes, amounts(&run.need))).collect();
                    ends.extend(started.iter().filter(|key| with_passing || !passing.contains(*key)).map(|key| (now + world.jobs[key].takes, amounts(&world.jobs[key].need))));
                    let moments: BTreeSet<u64> = ends.iter().map(|(end, _)| *end).chain([now]).collect();
                    moments.into_iter().find(|moment| {
                        let used = ends.iter().filter(|(end, _)| end > moment).fold([0; 3], |sum, (_, need)| plus(sum, *need));
                        covers(minus([i64::from(CPUS), i64::try_from(MEMORY).unwrap(), i64::from(GPUS)], used), amounts(&head.need))
                    }).unwrap()
                };
                prop_assert!(earliest(true) <= earliest(false), "head {} delayed at {now}: {} \
                    instead of {}", head.key, earliest(true), earliest(false));
            }
            world.carry_out(&decision, now);
            if world.over.len() == jobs.len() {
                return Ok(());
            }
        }
    }
}
