//! The contract of `Cluster`: one suite for every kind, over every method, chosen by the kind's
//! capabilities. A kind provides a [`Subject`] that makes plans for it and counts its queries; the
//! suite uses only the seam.

mod content;
mod knowledge;
mod planning;
mod runs;

use towline_core::RunId;
use towline_core::cluster::events::state_of;
use towline_core::cluster::{Cluster, Depth, Facts, RunRef};
use towline_core::job::{Job, OneOrMany};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::Surroundings;
use towline_core::state::RunState;

/// A kind of cluster to test.
pub trait Subject {
    fn cluster(&self) -> &dyn Cluster;
    /// The plan of a job, as the flow makes it from these facts.
    fn plan_of(&self, job: Job, around: Surroundings, facts: Facts) -> towline_core::Result<Plan>;
    /// Adds the keys that every job of the suite needs besides its command.
    fn adapt(&self, _job: &mut Job) {}
    /// The folder on this machine where jobs start.
    fn workdir(&self) -> String {
        "/".to_owned()
    }
    /// Plays a job of the suite to its end, if the cluster does not run it by itself.
    fn live(&self, _run: &RunId, _log: &[u8], _succeeds: bool) {}
    /// The number of queries to the scheduler or the service, as it counts them itself; `None` if
    /// nothing counts.
    fn calls(&self) -> Option<usize>;
    /// The number of queries that observing so many runs may take, at most.
    fn observe_calls(&self, runs: usize) -> usize;
}

/// Checks everything that a cluster promises.
pub fn check(subject: &dyn Subject) {
    planning::check(subject);
    runs::check(subject);
    content::check(subject);
    knowledge::check(subject);
}

/// A plan for a job that runs `script` in a shell, in `runs` runs.
pub fn plan(subject: &dyn Subject, script: &str, runs: u32) -> Plan {
    let facts = subject.cluster().facts().expect("it can be asked");
    plan_with(subject, script, runs, facts).expect("a plain job fits")
}

fn plan_with(
    subject: &dyn Subject,
    script: &str,
    runs: u32,
    facts: Facts,
) -> towline_core::Result<Plan> {
    let mut job = Job {
        command: OneOrMany::Many(vec!["sh".into(), "-c".into(), script.into()]),
        ..Job::default()
    };
    if runs > 1 {
        job.sweep.set(&format!("i=1-{runs}")).expect("a range");
    }
    subject.adapt(&mut job);
    let caps = subject.cluster().caps();
    let path = std::env::var("PATH").expect("PATH is set");
    let around = Surroundings {
        workdir: subject.workdir(),
        umask: 0o022,
        inherit: caps.is_here,
        environment: if caps.is_here {
            vec![("PATH".to_owned(), path)]
        } else {
            Vec::new()
        },
        ..Surroundings::default()
    };
    subject.plan_of(job, around, facts)
}

/// Submits a plan; the runs, with the cluster's names for them.
pub fn submit(subject: &dyn Subject, plan: &Plan) -> Vec<RunRef> {
    let natives = subject
        .cluster()
        .submit(plan, &SecretSet::default())
        .expect("a submission is taken");
    assert_eq!(natives.len(), plan.runs.len(), "a name for each run");
    let runs = plan.runs.iter().zip(natives);
    runs.map(|(run, native)| RunRef {
        native: Some(native),
        ..RunRef::of(&run.id)
    })
    .collect()
}

/// The cluster's state of a run; `None` if it has never had it.
pub fn state(subject: &dyn Subject, run: &RunRef) -> Option<RunState> {
    let observed = subject
        .cluster()
        .observe(std::slice::from_ref(run), Depth::Scheduler)
        .expect("it can be asked");
    assert_eq!(observed.unasked, None, "the scheduler was asked");
    let report = observed.runs.first().expect("a report for each run");
    assert_eq!(report.run, run.run);
    state_of(report)
}

pub fn wait_for_end(subject: &dyn Subject, run: &RunRef) -> RunState {
    crate::until("the end of a run", || {
        state(subject, run).filter(|state| state.phase.is_ended())
    })
}

/// A run that the cluster has never had.
fn nobody(number: u32) -> RunRef {
    RunRef::of(&RunId::new("nobody", 1, number))
}

/// The number of queries that an act took; `None` if nothing counts.
fn counted(subject: &dyn Subject, act: impl FnOnce()) -> Option<usize> {
    let before = subject.calls();
    act();
    Some(subject.calls()? - before?)
}
