//! The `Backend` contract over the emulator, for each flavour.

use crate::lab::FLAVOURS;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;
use towline_backends::azureml::backend::AzureBackend;
use towline_backends::azureml::config::AzureConfig;
use towline_core::backend::{Backend, Staged};
use towline_core::config::{Cluster, ClusterKind, Credential};
use towline_core::job::{Job, Words};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::Surroundings;
use towline_core::{Result, RunId};
use towline_engine::flow;
use towline_io::azure::cloud::Cloud;
use towline_io::azure::identity::{self, SignIn};
use towline_io::azure::seam::AzureCloud;
use towline_io::web::Web;
use towline_snapshot::digest::Digest;
use towline_testkit::Home;
use towline_testkit::aml::Aml;
use towline_testkit::contract::{self, Stage, now};
use towline_wire::line::OwnProgram;

static NUMBER: AtomicU32 = AtomicU32::new(1);

struct Far {
    backend: AzureBackend,
    flavour: &'static str,
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

fn backend(aml: &Aml, flavour: &str, folder: &Path) -> AzureBackend {
    let scope = aml.scope();
    let cluster = Cluster {
        kind: ClusterKind::Azureml,
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
        ..Cluster::local()
    };
    let config = AzureConfig::new("lab", &cluster, None, "alice").unwrap();
    let path = Home::new(env!("CARGO_BIN_EXE_tow")).binary().to_owned();
    let digest = Digest::of(&std::fs::read(&path).unwrap()).to_string();
    AzureBackend::new(
        config,
        Arc::new(cloud(aml, folder)),
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
        job.resources.instance_type =
            (self.flavour == "sing").then(|| "ND96amrs_A100_v4".to_owned());
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

#[test]
fn each_flavour_keeps_the_contract() {
    let aml = Aml::start();
    let folder = tempfile::tempdir().unwrap();
    for flavour in FLAVOURS {
        contract::check(&Far {
            backend: backend(&aml, flavour, folder.path()),
            flavour,
        });
    }
}

#[test]
fn what_another_client_submitted_is_found() {
    let aml = Aml::start();
    let folder = tempfile::tempdir().unwrap();
    let first = Far {
        backend: backend(&aml, "aml", folder.path()),
        flavour: "aml",
    };
    let plan = first.plan("true", 1);
    let handles = now(first
        .backend
        .submit(&plan, &SecretSet::default(), &Staged::default()))
    .unwrap();
    let second = backend(&aml, "aml", folder.path());
    assert_eq!(
        now(second.find(&plan.runs[0].id)).unwrap().as_ref(),
        handles.first()
    );
    assert_eq!(
        now(second.submit(&plan, &SecretSet::default(), &Staged::default())).unwrap(),
        handles
    );
}
