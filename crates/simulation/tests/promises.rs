//! The promises hold in the simulated world.
//!
//! `TOW_SIMULATION_SEEDS=FIRST..LAST` chooses the seeds; `TOW_SIMULATION_TRACE=1` prints what
//! happens in the first story that breaks a promise.

use towline_simulation::{Story, run, shrink};

/// How many actions a story has before all faults are over.
const STEPS: usize = 300;
const QUICK_SEEDS: std::ops::Range<u64> = 0..2_000;

#[expect(clippy::disallowed_methods, reason = "a test reads its own variables")]
fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("TOW_SIMULATION_SEEDS") else {
        return QUICK_SEEDS;
    };
    let (first, last) = text.split_once("..").expect("FIRST..LAST");
    first.parse().expect("a number")..last.parse().expect("a number")
}

#[expect(clippy::disallowed_methods, reason = "a test reads its own variables")]
fn is_traced() -> bool {
    std::env::var_os("TOW_SIMULATION_TRACE").is_some_and(|value| value == "1")
}

#[test]
fn no_story_breaks_a_promise() {
    let Err(failure) = run(seeds(), STEPS) else {
        return;
    };
    let shortest = shrink(&failure);
    let plans = towline_simulation::plans();
    let (promise, trace) = shortest.tell(&plans, true);
    let trace = if is_traced() {
        trace.join("\n")
    } else {
        String::new()
    };
    let actions: Vec<String> = shortest
        .0
        .iter()
        .map(|action| format!("{action:?}"))
        .collect();
    let seed = failure.seed;
    panic!(
        "{trace}\nseed {seed}: {}\nafter {} actions: {}\n  {}\nagain: TOW_SIMULATION_SEEDS={seed}..{} \
         TOW_SIMULATION_TRACE=1 cargo test -p towline-simulation",
        failure.promise,
        actions.len(),
        promise.unwrap_or_default(),
        actions.join("\n  "),
        seed + 1
    );
}

#[test]
fn a_seed_tells_the_same_story_twice() {
    let plans = towline_simulation::plans();
    for seed in 0..20 {
        let story = Story::new(seed, STEPS);
        assert_eq!(story, Story::new(seed, STEPS));
        assert_eq!(story.tell(&plans, true), story.tell(&plans, true));
    }
}
