//! The `Backend` contract over real Slurm, with its database and without.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use towline_backends::far::FarCluster;
use towline_backends::slurm::backend::SlurmBackend;
use towline_backends::slurm::config::SlurmConfig;
use towline_core::RunId;
use towline_core::backend::{Backend, Handle, Staged};
use towline_core::config::{Cluster, ClusterKind};
use towline_core::job::{Job, Words};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::Surroundings;
use towline_engine::flow;
use towline_io::machine::SshTransport;
use towline_snapshot::digest::Digest;
use towline_testkit::contract::{self, Stage, now};
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, until};
use towline_wire::line::OwnProgram;

static NUMBER: AtomicU32 = AtomicU32::new(1);

struct Far {
    backend: SlurmBackend,
    cluster: Slurm,
    _folder: tempfile::TempDir,
}

impl Far {
    fn new(options: &Options) -> Self {
        let cluster = Slurm::start(options);
        // Paths of sockets are short.
        let folder = tempfile::Builder::new()
            .prefix("tow-c-")
            .tempdir_in("/tmp")
            .unwrap();
        let backend = connected(&cluster, folder.path());
        Self {
            backend,
            cluster,
            _folder: folder,
        }
    }
}

fn connected(cluster: &Slurm, folder: &Path) -> SlurmBackend {
    let described = Cluster {
        kind: ClusterKind::Slurm,
        host: Some("login".into()),
        ..Cluster::local()
    };
    let config = SlurmConfig::new("lab", &described).unwrap();
    let transport = SshTransport::new(
        "login",
        Some(cluster.ssh_config()),
        folder,
        folder.join("known_hosts"),
    )
    .unwrap();
    let path = Home::new(env!("CARGO_BIN_EXE_tow")).binary().to_owned();
    let digest = Digest::of(&std::fs::read(&path).unwrap()).to_string();
    SlurmBackend::new(
        config,
        Arc::new(transport),
        OwnProgram { path, digest },
        None,
    )
}

impl Stage for Far {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }
    fn plan(&self, script: &str, runs: u32) -> Plan {
        let mut job = Job {
            command: Words::Many(vec!["sh".into(), "-c".into(), script.into()]),
            ..Job::default()
        };
        if runs > 1 {
            job.sweep.set(&format!("i=1-{runs}")).unwrap();
        }
        let around = Surroundings {
            workdir: "/".to_owned(),
            umask: 0o022,
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
        let facts = now(self.backend.probe()).unwrap();
        flow::make_plan(request, &self.backend, &facts).unwrap().0
    }
    fn live(&self, _: &RunId, _: &[u8], _: bool) {}
}

impl Far {
    fn submit(&self, plan: &Plan) -> Vec<Handle> {
        now(self
            .backend
            .submit(plan, &SecretSet::default(), &Staged::default()))
        .unwrap()
    }

    fn find(&self, run: &RunId) -> Option<Handle> {
        now(self.backend.find(run)).unwrap()
    }

    fn wait_for_end(&self, handle: &Handle) {
        use towline_core::backend::Observation;
        until("the end of a run", || {
            match now(self.backend.observe(std::slice::from_ref(handle)))
                .unwrap()
                .remove(0)
            {
                Observation::Known { state, .. } if state.phase.is_ended() => Some(()),
                _ => None,
            }
        });
    }

    fn more(&self) {
        self.the_same_handle_is_found_also_after_the_end();
        self.another_line_finds_what_the_first_submitted();
        assert_eq!(
            self.cluster.root("login", ["squeue", "-h"]).ok().stdout,
            "",
            "nothing is left in the queue"
        );
    }

    fn the_same_handle_is_found_also_after_the_end(&self) {
        let plan = self.plan("true", 2);
        let handles = self.submit(&plan);
        for (run, handle) in plan.runs.iter().zip(&handles) {
            assert_eq!(self.find(&run.id).as_ref(), Some(handle));
            self.wait_for_end(handle);
            assert_eq!(
                self.find(&run.id).as_ref(),
                Some(handle),
                "also once it has ended"
            );
        }
    }

    fn another_line_finds_what_the_first_submitted(&self) {
        let plan = self.plan("echo x >> ~/once", 1);
        let handles = self.submit(&plan);
        self.backend.hang_up();
        let folder = tempfile::Builder::new()
            .prefix("tow-c-")
            .tempdir_in("/tmp")
            .unwrap();
        let other = connected(&self.cluster, folder.path());
        assert_eq!(
            now(other.find(&plan.runs[0].id)).unwrap().as_ref(),
            Some(&handles[0])
        );
        assert_eq!(
            now(other.submit(&plan, &SecretSet::default(), &Staged::default())).unwrap(),
            handles
        );
        self.wait_for_end(&handles[0]);
        assert_eq!(
            std::fs::read_to_string(self.cluster.home("alice").join("once")).unwrap(),
            "x\n"
        );
    }
}

#[test]
fn slurm_with_accounting_keeps_the_contract() {
    let far = Far::new(&Options {
        nodes: 1,
        ..Options::default()
    });
    contract::check(&far);
    far.more();
}

#[test]
fn slurm_without_accounting_keeps_the_contract() {
    let far = Far::new(&Options {
        nodes: 1,
        accounting: false,
        ..Options::default()
    });
    contract::check(&far);
    far.more();
}
