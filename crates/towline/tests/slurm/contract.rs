//! The contract of `Cluster` over real Slurm, with its database and without.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use towline_backends::remembered::Remembered;
use towline_backends::slurm::cluster::SlurmCluster;
use towline_backends::slurm::config::SlurmSettings;
use towline_core::cluster::{Cluster, Depth, Facts, RunRef};
use towline_core::config::SlurmConfig;
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::Surroundings;
use towline_core::{Result, RunId};
use towline_engine::flow;
use towline_io::machine::SshTransport;
use towline_snapshot::digest::Digest;
use towline_testkit::Home;
use towline_testkit::contract::{self, Subject};
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_wire::program::OwnProgram;

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// Has every command of the login host by which Slurm is asked counted in alice's home.
const COUNTED: &str = r#"mkdir /usr/libexec/slurm-real
for name in squeue sacct scontrol sinfo sbatch scancel; do
mv /usr/bin/$name /usr/libexec/slurm-real/$name
printf '#!/bin/sh\necho %s >> /home/alice/asked\nexec /usr/libexec/slurm-real/%s "$@"\n' $name $name > /usr/bin/$name
chmod 755 /usr/bin/$name
done"#;

struct Far {
    cluster: SlurmCluster,
    slurm: Slurm,
    _folder: tempfile::TempDir,
}

impl Far {
    fn new(options: &Options) -> Self {
        let slurm = Slurm::start(options);
        slurm.root("login", ["sh", "-c", COUNTED]).ok();
        // Paths of sockets are short.
        let folder = tempfile::Builder::new()
            .prefix("tow-c-")
            .tempdir_in("/tmp")
            .unwrap();
        let cluster = connected(&slurm, folder.path());
        Self {
            cluster,
            slurm,
            _folder: folder,
        }
    }
}

fn connected(slurm: &Slurm, folder: &Path) -> SlurmCluster {
    let described = SlurmConfig {
        host: Some("login".into()),
        ..SlurmConfig::default()
    };
    let config = SlurmSettings::new("lab", &described).unwrap();
    let transport = SshTransport::new(
        "login",
        Some(slurm.ssh_config()),
        folder,
        folder.join("known_hosts"),
    )
    .unwrap();
    let path = Home::new(env!("CARGO_BIN_EXE_tow")).binary().to_owned();
    let digest = Digest::of(&std::fs::read(&path).unwrap()).to_string();
    SlurmCluster::new(
        config,
        Arc::new(transport),
        OwnProgram {
            path,
            digest,
            packer: None,
        },
        Remembered::in_memory(),
    )
}

impl Subject for Far {
    fn cluster(&self) -> &dyn Cluster {
        &self.cluster
    }
    fn plan_of(&self, job: Job, around: Surroundings, facts: Facts) -> Result<Plan> {
        let cluster = &self.cluster;
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
    fn calls(&self) -> Option<usize> {
        let asked = std::fs::read_to_string(self.slurm.home("alice").join("asked"));
        Some(asked.map_or(0, |text| text.lines().count()))
    }
    /// The queue and the accounting, each once; what was asked for and is gone, once more.
    fn observe_calls(&self, _: usize) -> usize {
        3
    }
}

impl Far {
    fn more(&self) {
        self.the_same_job_is_found_also_after_the_end();
        self.another_connection_finds_what_the_first_submitted();
        assert_eq!(
            self.slurm.root("login", ["squeue", "-h"]).ok().stdout,
            "",
            "nothing is left in the queue"
        );
    }

    fn native(&self, run: &RunId) -> Option<String> {
        native(&self.cluster, run)
    }

    fn the_same_job_is_found_also_after_the_end(&self) {
        let plan = contract::plan(self, "true", 2);
        let runs = contract::submit(self, &plan);
        for run in &runs {
            assert_eq!(self.native(&run.run), run.native);
            contract::wait_for_end(self, run);
            assert_eq!(self.native(&run.run), run.native, "also once it has ended");
        }
    }

    fn another_connection_finds_what_the_first_submitted(&self) {
        let plan = contract::plan(self, "echo x >> ~/once", 1);
        let runs = contract::submit(self, &plan);
        self.cluster.hang_up();
        let folder = tempfile::Builder::new()
            .prefix("tow-c-")
            .tempdir_in("/tmp")
            .unwrap();
        let other = connected(&self.slurm, folder.path());
        assert_eq!(native(&other, &runs[0].run), runs[0].native);
        let again = other.submit(&plan, &SecretSet::default()).unwrap();
        assert_eq!(again.first(), runs[0].native.as_ref());
        contract::wait_for_end(self, &runs[0]);
        assert_eq!(
            std::fs::read_to_string(self.slurm.home("alice").join("once")).unwrap(),
            "x\n"
        );
    }
}

/// What Slurm calls a run, found by our id alone.
fn native(cluster: &dyn Cluster, run: &RunId) -> Option<String> {
    let observed = cluster
        .observe(&[RunRef::of(run)], Depth::Scheduler)
        .unwrap();
    assert_eq!(observed.unasked, None);
    let report = &observed.runs[0];
    let claims = report
        .attempts
        .iter()
        .rev()
        .filter_map(|of| of.claim.as_ref());
    let claimed = claims.map(|claim| claim.by.job.clone()).next();
    let native = report.native.as_ref().map(|native| native.id.clone());
    native.or(claimed)
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
