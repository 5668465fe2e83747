//! The contract of `Cluster`, over this machine with its real daemon, and over the toy.
#![allow(clippy::unwrap_used, clippy::too_many_lines)]

use std::sync::atomic::{AtomicU32, Ordering};
use towline_backends::local::LocalCluster;
use towline_core::cluster::{Cluster, Depth, Facts, RunRef};
use towline_core::config::LocalConfig;
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::reason::{Cause, Ending};
use towline_core::redact::SecretSet;
use towline_core::resolve::Surroundings;
use towline_core::{ErrorKind, Result, RunId};
use towline_engine::flow;
use towline_testkit::Home;
use towline_testkit::contract::{self, Subject};
use towline_testkit::toy::{Fault, ToyCluster};

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// A plan as the flow makes it, for any cluster.
fn plan(cluster: &dyn Cluster, job: Job, around: Surroundings, facts: Facts) -> Result<Plan> {
    let request = flow::Request {
        job,
        total_gpus: None,
        gpus_per_node: None,
        around,
        epoch_seconds: 1_700_000_000,
        random: NUMBER.fetch_add(1, Ordering::Relaxed),
        resubmits: None,
        home: None,
    };
    flow::make_plan(request, cluster, facts).map(|(plan, _)| plan)
}

/// This machine: its daemon is started here, by the shipped binary.
struct Local {
    home: Home,
    cluster: LocalCluster,
}

impl Local {
    fn new() -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_tow"));
        home.tow(["doctor"]).ok();
        Self {
            cluster: LocalCluster::new("local", home.state(), &LocalConfig::default()),
            home,
        }
    }
}

impl Subject for Local {
    fn cluster(&self) -> &dyn Cluster {
        &self.cluster
    }
    fn plan_of(&self, job: Job, around: Surroundings, facts: Facts) -> Result<Plan> {
        plan(&self.cluster, job, around, facts)
    }
    fn workdir(&self) -> String {
        self.home.project().display().to_string()
    }
    /// The daemon is this machine's own: nobody has to be spared.
    fn calls(&self) -> Option<usize> {
        None
    }
    fn observe_calls(&self, _: usize) -> usize {
        usize::MAX
    }
}

struct Toy(ToyCluster);

impl Subject for Toy {
    fn cluster(&self) -> &dyn Cluster {
        &self.0
    }
    fn plan_of(&self, job: Job, around: Surroundings, facts: Facts) -> Result<Plan> {
        plan(&self.0, job, around, facts)
    }
    fn live(&self, run: &RunId, log: &[u8], succeeds: bool) {
        let failed = Ending {
            exit_code: Some(7),
            ..Ending::cause(Cause::ExitCode)
        };
        let ending = if succeeds { Ending::success() } else { failed };
        self.0.play(run, log, ending);
    }
    fn calls(&self) -> Option<usize> {
        Some(self.0.calls())
    }
    fn observe_calls(&self, _: usize) -> usize {
        1
    }
}

#[test]
fn this_machine_keeps_the_contract() {
    contract::check(&Local::new());
}

#[test]
fn the_toy_keeps_the_contract() {
    contract::check(&Toy(ToyCluster::default()));
}

#[test]
fn a_lost_answer_is_found_again_by_the_run_id() {
    let toy = Toy(ToyCluster::default());
    let plan = contract::plan(&toy, "true", 1);
    toy.0.set_fault(Fault::LostAnswer);
    let lost = toy.0.submit(&plan, &SecretSet::default()).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Unreachable);
    toy.0.set_fault(Fault::None);
    let run = RunRef::of(&plan.runs[0].id);
    assert!(contract::state(&toy, &run).is_some());
}

#[test]
fn unreachable_is_an_error_and_never_an_ending() {
    let toy = Toy(ToyCluster::default());
    let plan = contract::plan(&toy, "true", 1);
    let runs = contract::submit(&toy, &plan);
    toy.0.set_fault(Fault::Unreachable);
    let error = toy.0.observe(&runs, Depth::Scheduler).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}
