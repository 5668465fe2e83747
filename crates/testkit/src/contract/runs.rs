//! Submitting, observing, cancelling, forgetting.

use super::{Subject, counted, nobody, plan, state, submit, wait_for_end};
use towline_core::cluster::{Depth, RunRef};
use towline_core::reason::Outcome;
use towline_core::state::Phase;

pub(super) fn check(subject: &dyn Subject) {
    a_run_is_submitted_once_however_often_it_is_sent(subject);
    a_run_is_found_by_its_id_alone(subject);
    many_are_observed_at_once(subject);
    a_cancel_may_come_twice_and_too_late(subject);
    what_never_came_there_can_be_given_up(subject);
    what_is_forgotten_is_gone(subject);
}

fn a_run_is_submitted_once_however_often_it_is_sent(subject: &dyn Subject) {
    let plan = plan(subject, "echo once", 1);
    let first = submit(subject, &plan);
    assert_eq!(submit(subject, &plan), first);
    subject.live(&plan.runs[0].id, b"once\n", true);
    let ended = wait_for_end(subject, &first[0]);
    assert_eq!(
        (ended.phase, ended.attempt),
        (Phase::Ended(Outcome::Succeeded), 1)
    );
    // Also after its end.
    assert_eq!(submit(subject, &plan), first);
    let after = state(subject, &first[0]).expect("it is still known");
    assert_eq!(after.attempt, 1);
}

fn a_run_is_found_by_its_id_alone(subject: &dyn Subject) {
    let plan = plan(subject, "true", 1);
    let by_id = RunRef::of(&plan.runs[0].id);
    assert_eq!(state(subject, &by_id), None, "it is not there yet");
    submit(subject, &plan);
    let delay = subject.cluster().listing_delay();
    let begun = std::time::Instant::now();
    while state(subject, &by_id).is_none() {
        assert!(begun.elapsed() <= delay, "an accepted run is listed");
    }
    subject.live(&by_id.run, b"", true);
    wait_for_end(subject, &by_id);
}

fn many_are_observed_at_once(subject: &dyn Subject) {
    let plan = plan(subject, "exit 7", 3);
    let mut runs = submit(subject, &plan);
    assert_eq!(runs.len(), 3);
    for run in &plan.runs {
        subject.live(&run.id, b"", false);
    }
    for run in &runs {
        let state = wait_for_end(subject, run);
        assert_eq!(state.phase, Phase::Ended(Outcome::Failed));
        let ending = state.ending.expect("an ended run has an ending");
        assert_eq!(ending.exit_code, Some(7));
    }
    runs.insert(1, nobody(1));
    for depth in [Depth::Records, Depth::Scheduler] {
        let calls = counted(subject, || {
            let cluster = subject.cluster();
            let observed = cluster.observe(&runs, depth).expect("it can be asked");
            let reported = observed.runs.iter().map(|report| &report.run);
            assert!(
                reported.eq(runs.iter().map(|run| &run.run)),
                "in their order"
            );
        });
        let most = subject.observe_calls(runs.len());
        assert!(
            calls.is_none_or(|calls| calls <= most),
            "{calls:?} > {most}"
        );
    }
    assert_eq!(
        state(subject, &runs[1]),
        None,
        "never heard of is said as such"
    );
    assert!(state(subject, &runs[3]).is_some());
}

fn a_cancel_may_come_twice_and_too_late(subject: &dyn Subject) {
    let plan = plan(subject, "sleep 1000", 1);
    let runs = submit(subject, &plan);
    let cancel = |runs: &[RunRef]| {
        let refused = subject.cluster().cancel(runs).expect("it can be told");
        assert!(refused.is_empty(), "{refused:?}");
    };
    cancel(&runs);
    let ended = wait_for_end(subject, &runs[0]);
    assert_eq!(ended.phase, Phase::Ended(Outcome::Cancelled));
    cancel(&runs);
    cancel(&[nobody(2)]);
    let after = state(subject, &runs[0]).expect("it is still known");
    assert_eq!(after.phase, Phase::Ended(Outcome::Cancelled));
}

fn what_never_came_there_can_be_given_up(subject: &dyn Subject) {
    let plan = plan(subject, "true", 1);
    subject.cluster().give_up(&plan).expect("nothing is there");
    assert_eq!(state(subject, &RunRef::of(&plan.runs[0].id)), None);
}

fn what_is_forgotten_is_gone(subject: &dyn Subject) {
    let plan = plan(subject, "true", 1);
    let runs = submit(subject, &plan);
    subject.live(&plan.runs[0].id, b"", true);
    wait_for_end(subject, &runs[0]);
    let forget = || subject.cluster().forget(&runs).expect("it has ended");
    forget();
    assert_eq!(state(subject, &runs[0]), None);
    forget();
}
