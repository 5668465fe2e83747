//! The contract of `Cluster`: one suite for every kind, over every method, chosen by what the kind
//! can do. A kind brings a [`Subject`] that makes plans for it and counts what it is asked; the
//! suite asks the rest through the seam alone.

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

/// What a kind of cluster brings to be tested.
pub trait Subject {
    fn cluster(&self) -> &dyn Cluster;
    /// The job as the flow resolves it there; its request is made from these facts.
    fn plan_of(&self, job: Job, around: Surroundings, facts: Facts) -> towline_core::Result<Plan>;
    /// What every job of the suite names beside its command.
    fn adapt(&self, _job: &mut Job) {}
    /// Where jobs begin on this machine.
    fn workdir(&self) -> String {
        "/".to_owned()
    }
    /// Lets a job of the suite live to its end, where the cluster does not do so by itself.
    fn live(&self, _run: &RunId, _log: &[u8], _succeeds: bool) {}
    /// How often the scheduler or the service was asked something, as it counts itself; `None` where
    /// nobody counts.
    fn calls(&self) -> Option<usize>;
    /// The most calls that observing so many runs may take.
    fn observe_calls(&self, runs: usize) -> usize;
}

/// Everything that a cluster promises.
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

/// Submits a plan; the runs, with what the cluster calls them.
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

/// What the cluster itself says of a run; `None` where it never heard of it.
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

/// A run that the cluster never heard of.
fn nobody(number: u32) -> RunRef {
    RunRef::of(&RunId::new("nobody", 1, number))
}

/// How many calls something took; `None` where nobody counts.
fn counted(subject: &dyn Subject, act: impl FnOnce()) -> Option<usize> {
    let before = subject.calls();
    act();
    Some(subject.calls()? - before?)
}
