//! Stories: made from a seed, told in a world, and shortened when they break a promise.

use crate::action::{Action, ClusterAct, Fault, Job};
use crate::plans::Plans;
use crate::random::Random;
use crate::world::{CLUSTERS, World};

/// The actions of one seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story(pub Vec<Action>);

/// A broken promise, with the story that breaks it.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub promise: String,
    pub story: Story,
}

impl Story {
    pub fn new(seed: u64, steps: usize) -> Self {
        let mut random = Random::new(seed);
        // Some worlds are calm, some are cruel.
        let calm = [6, 20, 60][random.below(3)];
        Self((0..steps).map(|_| action(&mut random, calm)).collect())
    }

    /// Tells the story in a new world. Returns the broken promise, if there is one, and what
    /// happened if it is to be traced.
    pub fn tell(&self, plans: &Plans, is_traced: bool) -> (Option<String>, Vec<String>) {
        let mut world = World::new(plans);
        world.trace = is_traced.then(Vec::new);
        for action in &self.0 {
            world.act(action);
            if world.facts.broken.is_some() {
                break;
            }
        }
        if world.facts.broken.is_none() {
            world.heal();
        }
        if world.facts.broken.is_none() {
            world.check_end();
        }
        (world.facts.broken, world.trace.unwrap_or_default())
    }
}

/// Tells the stories of these seeds. Returns the first that breaks a promise.
pub fn run(seeds: std::ops::Range<u64>, steps: usize) -> Result<(), Box<Failure>> {
    let plans = Plans::new();
    for seed in seeds {
        let story = Story::new(seed, steps);
        if let (Some(promise), _) = story.tell(&plans, false) {
            return Err(Box::new(Failure {
                seed,
                promise,
                story,
            }));
        }
    }
    Ok(())
}

/// The shortest story that still breaks the same promise, found by leaving actions out.
pub fn shrink(failure: &Failure) -> Story {
    let plans = Plans::new();
    let promise = kind_of(&failure.promise);
    let breaks = |story: &Story| {
        let (broken, _) = story.tell(&plans, false);
        broken.is_some_and(|broken| kind_of(&broken) == promise)
    };
    let story = &failure.story;
    let mut best = story.clone();
    let mut size = best.0.len() / 2;
    while size > 0 {
        let mut at = 0;
        let before = best.0.len();
        while at < best.0.len() {
            let mut shorter = best.clone();
            shorter.0.drain(at..(at + size).min(best.0.len()));
            if breaks(&shorter) {
                best = shorter;
            } else {
                at += size;
            }
        }
        if best.0.len() == before || size > 1 {
            size /= 2;
        }
    }
    best
}

/// A broken promise without the names and numbers in it.
fn kind_of(promise: &str) -> String {
    let is_word = |word: &&str| !word.contains(|letter: char| letter.is_ascii_digit());
    let words: Vec<&str> = promise.split_whitespace().filter(is_word).take(6).collect();
    words.join(" ")
}

fn action(random: &mut Random, calm: usize) -> Action {
    if random.once_in(calm) {
        return Action::Fault(fault(random));
    }
    let which = random.below(1000);
    match random.below(100) {
        0..34 => Action::Daemon(1 + random.below(12)),
        34..42 => Action::Task(which),
        42..56 => Action::Runner(which),
        56..62 => Action::Client(which),
        62..72 => Action::Worker {
            cluster: which,
            steps: 1 + random.below(8),
        },
        72..77 => Action::Cluster {
            cluster: which,
            act: cluster_act(random),
        },
        77..83 => Action::Time([1, 30, 400, 1_000, 5_000, 31_000][random.below(6)]),
        83..91 => Action::Submit(Job {
            cluster: [0, 0, 0, 1, 2][random.below(5)],
            runs: [1, 1, 1, 1, 3][random.below(5)],
            gpus: [0, 0, 1, 2][random.below(4)],
            tier: random.below(3),
            has_secrets: random.once_in(3),
            retries: random.once_in(3),
            after: random
                .once_in(5)
                .then(|| (random.below(100), random.below(3))),
        }),
        91..93 => Action::Cancel(which),
        93 => match random.below(3) {
            0 => Action::Hold(which),
            1 => Action::Resume(which),
            _ => Action::Edit {
                run: which,
                gpus: [0, 1, 2][random.below(3)],
                tier: random.below(3),
            },
        },
        94..96 => Action::Watch(which),
        96..97 => Action::Logs(which),
        97..98 => Action::Forget(which),
        _ => Action::RanksEnd {
            runner: which,
            how: random.below(4),
        },
    }
}

fn cluster_act(random: &mut Random) -> ClusterAct {
    let job = random.below(100);
    match random.below(5) {
        0 | 1 => ClusterAct::Start(job),
        2 => ClusterAct::Print { job, bytes: 4 },
        3 => ClusterAct::End {
            job,
            how: random.below(6),
        },
        _ => ClusterAct::List,
    }
}

fn fault(random: &mut Random) -> Fault {
    let which = random.below(100);
    let on = random.once_in(2);
    match random.below(20) {
        0..3 => Fault::KillDaemon,
        3 => Fault::KillRunner(which),
        4 => Fault::KillRunnerAndGuard(which),
        5 => Fault::KillClient(which),
        6 => Fault::PowerCut {
            kept: random.below(9),
        },
        7..9 => Fault::DiskFull(on),
        9 => Fault::Unreadable(on),
        10 => Fault::NoProcesses(on),
        11 => Fault::ClockJump([-7_200_000, -1_000, 1_000, 86_400_000][random.below(4)]),
        12 => Fault::Network {
            cluster: which % CLUSTERS,
            is_up: on,
        },
        13..16 => Fault::LoseAnswer(which),
        16..19 => Fault::Refuse { cluster: which, on },
        _ => Fault::CutRunner(which),
    }
}
