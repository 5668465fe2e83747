//! The `Backend` contract, over the local cluster with its real daemon, and over the fake one.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU32, Ordering};
use towline_backends::local::LocalBackend;
use towline_core::RunId;
use towline_core::backend::{Backend, Handle, Staged};
use towline_core::config::Cluster;
use towline_core::job::{Job, Words};
use towline_core::plan::Plan;
use towline_core::reason::{Cause, Ending};
use towline_core::redact::SecretSet;
use towline_core::resolve::Surroundings;
use towline_engine::flow;
use towline_testkit::contract::{self, Stage, now};
use towline_testkit::fake::{FakeBackend, Fault};
use towline_testkit::{Home, until};
use towline_wire::layout::StateFolder;

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// A plan as the flow makes it, for any backend.
fn plan(backend: &dyn Backend, workdir: &str, script: &str, runs: u32) -> Plan {
    let mut job = Job {
        command: Words::Many(vec!["sh".into(), "-c".into(), script.into()]),
        ..Job::default()
    };
    if runs > 1 {
        job.sweep.set(&format!("i=1-{runs}")).unwrap();
    }
    let environment = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let around = Surroundings {
        environment,
        workdir: workdir.to_owned(),
        umask: 0o022,
        inherit: true,
        ..Surroundings::default()
    };
    let random = NUMBER.fetch_add(1, Ordering::Relaxed);
    let request = flow::Request {
        job,
        total_gpus: None,
        gpus_per_node: None,
        around,
        epoch_seconds: 1_700_000_000,
        random,
        resubmits: None,
    };
    let facts = now(backend.probe()).unwrap();
    flow::make_plan(request, backend, &facts).unwrap().0
}

/// The local cluster: its daemon is started here, by the shipped binary.
struct Local {
    home: Home,
    backend: LocalBackend,
}

impl Local {
    fn new() -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_tow"));
        home.tow(["doctor"]).ok();
        let state: StateFolder = home.state();
        Self {
            backend: LocalBackend::new("local", state, &Cluster::local()),
            home,
        }
    }
}

impl Stage for Local {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }
    fn plan(&self, script: &str, runs: u32) -> Plan {
        plan(
            &self.backend,
            &self.home.project().display().to_string(),
            script,
            runs,
        )
    }
    fn live(&self, _: &RunId, _: &[u8], _: bool) {}
}

struct Fake(FakeBackend);

impl Stage for Fake {
    fn backend(&self) -> &dyn Backend {
        &self.0
    }
    fn plan(&self, script: &str, runs: u32) -> Plan {
        plan(&self.0, "/", script, runs)
    }
    fn live(&self, run: &RunId, log: &[u8], succeeds: bool) {
        let ending = if succeeds {
            Ending::success()
        } else {
            Ending {
                exit_code: Some(7),
                ..Ending::cause(Cause::ExitCode)
            }
        };
        self.0.play(run, log, ending);
    }
}

#[test]
fn the_local_cluster_keeps_the_contract() {
    contract::check(&Local::new());
}

#[test]
fn the_fake_cluster_keeps_the_contract() {
    contract::check(&Fake(FakeBackend::default()));
}

#[test]
fn a_lost_answer_is_found_again_by_the_run_id() {
    let stage = Fake(FakeBackend::default());
    let plan = stage.plan("true", 1);
    stage.0.set_fault(Fault::LostAnswer);
    assert!(
        now(stage
            .0
            .submit(&plan, &SecretSet::default(), &Staged::default()))
        .is_err()
    );
    stage.0.set_fault(Fault::None);
    let handle = now(stage.0.find(&plan.runs[0].id)).unwrap();
    assert_eq!(
        handle,
        Some(Handle {
            run: plan.runs[0].id.clone(),
            native: plan.runs[0].id.to_string()
        })
    );
}

#[test]
fn unreachable_is_an_error_and_never_an_ending() {
    let stage = Fake(FakeBackend::default());
    let plan = stage.plan("true", 1);
    let handles = now(stage
        .0
        .submit(&plan, &SecretSet::default(), &Staged::default()))
    .unwrap();
    stage.0.set_fault(Fault::Unreachable);
    let error = now(stage.0.observe(&handles)).unwrap_err();
    assert_eq!(error.kind(), towline_core::ErrorKind::Unreachable);
}

#[test]
fn a_local_submission_survives_the_daemon_between_two_sendings() {
    let stage = Local::new();
    let plan = stage.plan("echo x >> once", 1);
    let submit = || {
        now(stage
            .backend
            .submit(&plan, &SecretSet::default(), &Staged::default()))
    };
    submit().unwrap();
    assert!(stage.home.kill_daemon());
    // The shipped binary starts the next one; this test program cannot.
    stage.home.tow(["doctor"]).ok();
    submit().unwrap();
    until("the run to end", || {
        (stage.home.tow(["ps", "--state", "active", "--json"]).json()["runs"]
            .as_array()
            .unwrap()
            .is_empty())
        .then_some(())
    });
    assert_eq!(stage.home.read("once"), "x\n");
}
