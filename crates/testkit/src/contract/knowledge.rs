//! The part of the contract that is about jobs the cluster knows by itself, and about reaching
//! runs.

use super::{Subject, nobody, plan, submit, wait_for_end};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use towline_core::cluster::{Purpose, ReachRequest, RunRef};
use towline_core::state::RunState;

pub(super) fn check(subject: &dyn Subject) {
    every_run_is_explained(subject);
    what_was_submitted_is_known_there(subject);
    a_run_that_does_not_run_lets_nobody_in(subject);
    one_that_watches_says_what_changed(subject);
}

fn every_run_is_explained(subject: &dyn Subject) {
    let plan = plan(subject, "true", 1);
    let run = &submit(subject, &plan)[0];
    let explain = |run: &RunRef| {
        subject
            .cluster()
            .explain(run)
            .expect("it can be asked")
            .text
    };
    assert!(!explain(run).is_empty());
    subject.live(&run.run, b"", true);
    wait_for_end(subject, run);
    assert!(!explain(run).is_empty());
    assert!(
        !explain(&nobody(4)).is_empty(),
        "also what it never heard of"
    );
}

fn what_was_submitted_is_known_there(subject: &dyn Subject) {
    let cluster = subject.cluster();
    let plan = plan(subject, "true", 1);
    let run = &submit(subject, &plan)[0];
    subject.live(&run.run, b"", true);
    wait_for_end(subject, run);
    if cluster.caps().is_here {
        cluster
            .known_jobs()
            .expect_err("the history here has all of it");
        cluster.plan_of(&plan.id, None).expect_err("as above");
        return;
    }
    // Our own records tell of the end before the service does, which tidies up first.
    crate::until("the cluster's own list to have its end", || {
        let known = cluster.known_jobs().expect("it can be asked");
        let ours = known.iter().find(|job| job.run.as_ref() == Some(&run.run));
        let ours = ours.unwrap_or_else(|| panic!("{} is not among {known:?}", run.run));
        ours.ended.then_some(())
    });
    let found = cluster.plan_of(&plan.id, None).expect("it can be asked");
    assert_eq!(found.expect("its plan is there").runs, plan.runs);
    let other = cluster.plan_of(&nobody(5).run, None);
    assert_eq!(other.expect("it can be asked"), None);
    let (folder, _) = cluster.run_folder(&run.run).expect("it lies somewhere");
    assert!(folder.contains(run.run.as_str()), "{folder}");
}

fn a_run_that_does_not_run_lets_nobody_in(subject: &dyn Subject) {
    let cluster = subject.cluster();
    if cluster.caps().is_here {
        return;
    }
    let request = ReachRequest {
        run: &nobody(6),
        state: &RunState::default(),
        node: 0,
        rank: 0,
        purpose: Purpose::Port,
    };
    cluster
        .reach(&request)
        .expect_err("there is nothing to enter");
}

fn one_that_watches_says_what_changed(subject: &dyn Subject) {
    let cluster = subject.cluster();
    let changes = Arc::new(AtomicUsize::new(0));
    let counted = changes.clone();
    cluster.on_change(Arc::new(move || {
        let _ = counted.fetch_add(1, Ordering::SeqCst);
    }));
    let plan = plan(subject, "true", 1);
    let run = &submit(subject, &plan)[0];
    subject.live(&run.run, b"", true);
    if cluster.caps().watches {
        crate::until("a call back", || {
            (changes.load(Ordering::SeqCst) > 0).then_some(())
        });
    }
    wait_for_end(subject, run);
}
