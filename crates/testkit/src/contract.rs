//! The contract of `Backend`: one suite for every kind. An implementation brings a [`Stage`] that
//! makes plans for it and lets its jobs live; the suite asks the rest through the seam alone.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use towline_core::RunId;
use towline_core::backend::{Backend, Handle, Observation, Staged};
use towline_core::cluster::{Cursor, LogSource};
use towline_core::plan::Plan;
use towline_core::reason::Outcome;
use towline_core::redact::SecretSet;
use towline_core::state::{Phase, RunState};

/// What a backend brings to be tested.
pub trait Stage {
    fn backend(&self) -> &dyn Backend;
    /// A plan for a job that runs `script` in a shell, in `runs` runs.
    fn plan(&self, script: &str, runs: u32) -> Plan;
    /// Lets this job of the suite live to its end, where the cluster does not do so by itself.
    fn live(&self, run: &RunId, log: &[u8], succeeds: bool);
}

/// Runs a future that never waits, or waits only for a thread of its own.
pub fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}

/// Everything a backend promises.
pub fn check(stage: &dyn Stage) {
    a_run_is_submitted_once_however_often_it_is_sent(stage);
    a_run_is_found_by_its_id_alone(stage);
    many_are_observed_in_one_query(stage);
    logs_go_on_from_any_byte(stage);
    a_cancel_may_come_twice_and_too_late(stage);
    what_is_forgotten_is_gone(stage);
    facts_name_at_least_one_node(stage);
}

fn submit(stage: &dyn Stage, plan: &Plan) -> Vec<Handle> {
    now(stage
        .backend()
        .submit(plan, &SecretSet::default(), &Staged::default()))
    .expect("a submission is taken")
}

fn state_of(stage: &dyn Stage, handle: &Handle) -> Option<RunState> {
    match now(stage.backend().observe(std::slice::from_ref(handle)))
        .expect("it can be asked")
        .remove(0)
    {
        Observation::Known { state, .. } => Some(*state),
        Observation::Gone => None,
    }
}

fn wait_for_end(stage: &dyn Stage, handle: &Handle) -> RunState {
    crate::until("the end of a run", || {
        state_of(stage, handle).filter(|state| state.phase.is_ended())
    })
}

fn a_run_is_submitted_once_however_often_it_is_sent(stage: &dyn Stage) {
    let plan = stage.plan("echo once", 1);
    let first = submit(stage, &plan);
    let second = submit(stage, &plan);
    assert_eq!(first, second);
    stage.live(&plan.runs[0].id, b"once\n", true);
    let state = wait_for_end(stage, &first[0]);
    assert_eq!(
        (state.phase, state.attempt),
        (Phase::Ended(Outcome::Succeeded), 1)
    );
    // Also after its end.
    assert_eq!(submit(stage, &plan), first);
    assert_eq!(
        state_of(stage, &first[0]).map(|state| state.attempt),
        Some(1)
    );
}

fn a_run_is_found_by_its_id_alone(stage: &dyn Stage) {
    let plan = stage.plan("true", 1);
    let id = &plan.runs[0].id;
    assert_eq!(
        now(stage.backend().find(id)).expect("it can be asked"),
        None
    );
    let handles = submit(stage, &plan);
    assert_eq!(
        now(stage.backend().find(id))
            .expect("it can be asked")
            .as_ref(),
        Some(&handles[0])
    );
    stage.live(id, b"", true);
    wait_for_end(stage, &handles[0]);
}

fn many_are_observed_in_one_query(stage: &dyn Stage) {
    let plan = stage.plan("exit 7", 3);
    let mut handles = submit(stage, &plan);
    assert_eq!(handles.len(), 3);
    for run in &plan.runs {
        stage.live(&run.id, b"", false);
    }
    for handle in &handles {
        let state = wait_for_end(stage, handle);
        assert_eq!(state.phase, Phase::Ended(Outcome::Failed));
        assert_eq!(
            state.ending.expect("an ended run has an ending").exit_code,
            Some(7)
        );
    }
    let unknown = RunId::new("nobody", 1, 1);
    handles.insert(
        1,
        Handle {
            native: unknown.to_string(),
            run: unknown,
        },
    );
    let observations = now(stage.backend().observe(&handles)).expect("it can be asked");
    assert_eq!(observations.len(), 4);
    assert_eq!(
        observations[1],
        Observation::Gone,
        "never heard of is said as such"
    );
    assert!(matches!(observations[3], Observation::Known { .. }));
}

fn logs_go_on_from_any_byte(stage: &dyn Stage) {
    let text = b"a\rb\0c\nno newline at the end";
    let plan = stage.plan(r"printf 'a\rb\000c\nno newline at the end'", 1);
    let handles = submit(stage, &plan);
    stage.live(&plan.runs[0].id, text, true);
    wait_for_end(stage, &handles[0]);
    for offset in 0..=text.len() {
        let cursor = Cursor {
            attempt: 1,
            source: LogSource::Rank(0),
            offset: offset as u64,
        };
        let chunk =
            now(stage.backend().logs(&handles[0], &cursor, 1 << 20)).expect("logs can be read");
        assert_eq!(chunk.bytes, &text[offset..]);
        assert_eq!(chunk.truncated_to, None);
    }
    let beyond = Cursor {
        attempt: 1,
        source: LogSource::Rank(0),
        offset: 1 << 20,
    };
    let chunk = now(stage.backend().logs(&handles[0], &beyond, 1)).expect("logs can be read");
    assert_eq!(
        chunk.truncated_to,
        Some(text.len() as u64),
        "a shorter log is told"
    );
}

fn a_cancel_may_come_twice_and_too_late(stage: &dyn Stage) {
    let plan = stage.plan("sleep 1000", 1);
    let handles = submit(stage, &plan);
    now(stage.backend().cancel(&handles)).expect("a cancel is taken");
    let state = wait_for_end(stage, &handles[0]);
    assert_eq!(state.phase, Phase::Ended(Outcome::Cancelled));
    now(stage.backend().cancel(&handles)).expect("an ended run may be cancelled again");
    let unknown = RunId::new("nobody", 1, 2);
    now(stage.backend().cancel(&[Handle {
        native: unknown.to_string(),
        run: unknown,
    }]))
    .expect("an unknown run may be cancelled");
    assert_eq!(
        state_of(stage, &handles[0]).map(|state| state.phase),
        Some(Phase::Ended(Outcome::Cancelled))
    );
}

fn what_is_forgotten_is_gone(stage: &dyn Stage) {
    let plan = stage.plan("true", 1);
    let handles = submit(stage, &plan);
    stage.live(&plan.runs[0].id, b"", true);
    wait_for_end(stage, &handles[0]);
    now(stage.backend().forget(&handles[0])).expect("an ended run may be forgotten");
    assert_eq!(state_of(stage, &handles[0]), None);
    now(stage.backend().forget(&handles[0])).expect("forgetting twice is fine");
}

fn facts_name_at_least_one_node(stage: &dyn Stage) {
    let facts = now(stage.backend().probe()).expect("it can be asked");
    assert!(facts.nodes.iter().any(|node| node.cpus > 0));
}
