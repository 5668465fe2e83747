//! Two processes share tokens: the second does not ask again.

use crate::stage::Stage;
use std::process::Command;
use std::sync::Arc;
use towline_core::cloud::{Call, Method};
use towline_core::config::Credential;
use towline_io::azure::cloud::Cloud;
use towline_io::azure::identity::{SignIn, Surroundings};

const ADDRESS_VARIABLE: &str = "TOW_TEST_ADDRESS";
const ENDPOINT_VARIABLE: &str = "TOW_TEST_ENDPOINT";
const FOLDER_VARIABLE: &str = "TOW_TEST_FOLDER";

#[test]
fn a_second_process_does_not_ask_again() {
    let stage = Stage::start();
    stage.works(&stage.default_cloud());
    let before = stage.aml.recorded().len();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::second", "--ignored", "--nocapture"])
        // The certificates come from the variable that OpenSSL uses.
        .env("SSL_CERT_FILE", stage.aml.authority())
        .env(ADDRESS_VARIABLE, stage.question(Method::Get, "").url)
        .env(ENDPOINT_VARIABLE, stage.aml.endpoint())
        .env(FOLDER_VARIABLE, stage.cache())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let targets: Vec<String> = stage
        .aml
        .recorded()
        .into_iter()
        .skip(before)
        .map(|pair| pair.target)
        .collect();
    assert_eq!(targets.len(), 1, "{targets:?}");
}

/// The second process. It has no identity of its own; all it knows is in the folder.
#[test]
#[ignore = "another test runs it as a process of its own"]
fn second() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let surroundings = Surroundings {
        variable: Arc::new(|_| None),
        keyring: Arc::new(|_| None),
        home: None,
        tell: Arc::new(|line| panic!("{line}")),
        command: String::new(),
        network: towline_io::network::Network::default(),
    };
    let (folder, credential) = (
        variable(FOLDER_VARIABLE),
        Credential::Word("managed_identity".to_owned()),
    );
    let sign_in = SignIn::new(
        "second",
        Some(&credential),
        None,
        surroundings,
        folder.as_ref(),
    )
    .unwrap();
    let cloud = Cloud::new(
        "second",
        Some(&variable(ENDPOINT_VARIABLE)),
        sign_in,
        folder.as_ref(),
    )
    .unwrap();
    let question = Call::get(variable(ADDRESS_VARIABLE));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    assert_eq!(runtime.block_on(cloud.call(&question)).unwrap().status, 200);
}
