//! The contract of `Cluster` over the emulator, for each flavour.

use crate::lab::FLAVOURS;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;
use towline_backends::azureml::cluster::AzureCluster;
use towline_backends::azureml::config::AzureSettings;
use towline_backends::remembered::Remembered;
use towline_core::Result;
use towline_core::cluster::{Cluster, Depth, Facts, RunRef};
use towline_core::config::{AzuremlConfig, Credential};
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::Surroundings;
use towline_engine::flow;
use towline_io::azure::cloud::Cloud;
use towline_io::azure::identity::{self, SignIn};
use towline_io::azure::seam::AzureCloud;
use towline_io::web::Web;
use towline_snapshot::digest::Digest;
use towline_testkit::Home;
use towline_testkit::aml::Aml;
use towline_testkit::contract::{self, Subject};
use towline_wire::program::OwnProgram;

static NUMBER: AtomicU32 = AtomicU32::new(1);

struct Far<'a> {
    cluster: AzureCluster,
    flavour: &'static str,
    aml: &'a Aml,
}

#[expect(clippy::unnecessary_wraps, reason = "the form that is asked for")]
fn threads() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    Ok(RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    }))
}

/// Signed in as a machine of the cloud.
fn cloud(aml: &Aml, folder: &Path) -> AzureCloud {
    let variables: BTreeMap<String, String> = aml.identity().into_iter().collect();
    let surroundings = identity::Surroundings {
        network: towline_io::network::Network::default(),
        variable: Arc::new(move |name| variables.get(name).cloned()),
        keyring: Arc::new(|_| None),
        home: None,
        tell: Arc::new(|_| {}),
        command: "tow nodes".to_owned(),
    };
    let credential = Credential::Word("managed_identity".to_owned());
    let sign_in = SignIn::new(
        "cluster `lab`",
        Some(&credential),
        None,
        surroundings,
        folder,
    )
    .unwrap();
    let web = Web::trusting(&std::fs::read(aml.authority()).unwrap()).unwrap();
    AzureCloud::new(
        "lab",
        Cloud::new("cluster `lab`", Some(aml.endpoint()), sign_in, folder)
            .unwrap()
            .with_web(web),
        threads,
    )
}

fn cluster(aml: &Aml, flavour: &str, folder: &Path) -> AzureCluster {
    let scope = aml.scope();
    let cluster = AzuremlConfig {
        subscription: Some(scope.subscription),
        resource_group: Some(scope.group),
        workspace: Some(scope.workspace),
        compute: (flavour != "sing").then(|| {
            if flavour == "itp" {
                "k8s".to_owned()
            } else {
                "cpu".to_owned()
            }
        }),
        virtual_cluster: (flavour == "sing").then(|| aml.cluster()),
        endpoint: Some(aml.endpoint().to_owned()),
        ..AzuremlConfig::default()
    };
    let config = AzureSettings::new("lab", &cluster, None, None, "alice").unwrap();
    let path = Home::new(env!("CARGO_BIN_EXE_tow")).binary().to_owned();
    let digest = Digest::of(&std::fs::read(&path).unwrap()).to_string();
    AzureCluster::new(
        config,
        Arc::new(cloud(aml, folder)),
        OwnProgram {
            path,
            digest,
            packer: None,
        },
        Remembered::in_memory(),
    )
}

impl Subject for Far<'_> {
    fn cluster(&self) -> &dyn Cluster {
        &self.cluster
    }
    fn adapt(&self, job: &mut Job) {
        job.resources.instance_type =
            (self.flavour == "sing").then(|| "ND96amrs_A100_v4".to_owned());
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
        Some(self.aml.asked().len())
    }
    /// Each job by itself, as long as there are few, and why it ended.
    fn observe_calls(&self, runs: usize) -> usize {
        2 * runs + 2
    }
}

#[test]
fn each_flavour_keeps_the_contract() {
    let aml = Aml::start();
    let folder = tempfile::tempdir().unwrap();
    for flavour in FLAVOURS {
        contract::check(&Far {
            cluster: cluster(&aml, flavour, folder.path()),
            flavour,
            aml: &aml,
        });
    }
}

#[test]
fn what_another_client_submitted_is_found() {
    let aml = Aml::start();
    let folder = tempfile::tempdir().unwrap();
    let first = Far {
        cluster: cluster(&aml, "aml", folder.path()),
        flavour: "aml",
        aml: &aml,
    };
    let plan = contract::plan(&first, "true", 1);
    let runs = contract::submit(&first, &plan);
    let second = cluster(&aml, "aml", folder.path());
    let seen = second
        .observe(&[RunRef::of(&plan.runs[0].id)], Depth::Scheduler)
        .unwrap();
    assert!(!seen.runs[0].is_unknown, "{seen:?}");
    let again = second.submit(&plan, &SecretSet::default()).unwrap();
    assert_eq!(again.first(), runs[0].native.as_ref());
}
