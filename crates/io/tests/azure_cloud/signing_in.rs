//! Each method of signing in.

use crate::stage::{SIGN_IN_COMMAND, Stage, shown};
use towline_core::ErrorKind;
use towline_core::cloud::Audience;

#[test]
fn as_a_managed_identity_of_a_service_or_of_azure_ml() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    stage.works(&cloud);
    for audience in [Audience::Workspace, Audience::Vault, Audience::Storage] {
        stage.wait(cloud.token(audience)).unwrap();
    }
    assert_eq!(
        (
            stage.asked("/msi/token"),
            stage.asked("resource=https%3A%2F%2Fml.azure.com")
        ),
        (4, 1)
    );
    stage.works(&stage.cloud(
        "{managed_identity: 6f0dcf5b-0000-4000-8000-000000000001}",
        None,
    ));
    assert_eq!(stage.asked("client_id=6f0dcf5b"), 1);
    // The older form, which nodes of Azure ML have.
    let [(_, endpoint), (_, secret)] = stage.aml.identity();
    stage.variables.lock().unwrap().clear();
    stage.set("MSI_ENDPOINT", &endpoint);
    stage.set("MSI_SECRET", &secret);
    stage.works(&stage.cloud(
        "{managed_identity: 6f0dcf5b-0000-4000-8000-000000000002}",
        None,
    ));
    assert_eq!(stage.asked("clientid=6f0dcf5b"), 1);
    stage.set("MSI_SECRET", "canary-canary");
    let error = stage
        .get(&stage.cloud(
            "{managed_identity: 6f0dcf5b-0000-4000-8000-000000000003}",
            None,
        ))
        .unwrap_err();
    assert!(
        error.kind() == ErrorKind::Denied && !shown(&error).contains("canary"),
        "{}",
        shown(&error)
    );
}

#[test]
fn as_a_service_principal() {
    let stage = Stage::start();
    let known = stage.aml.principal();
    let credential = format!(
        "{{tenant_id: {}, client_id: {}, client_secret: 'env:LAB_SECRET'}}",
        known.tenant, known.client
    );
    let cloud = stage.cloud(&credential, None);
    let error = stage.get(&cloud).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Config && shown(&error).contains("LAB_SECRET"),
        "{}",
        shown(&error)
    );
    stage.set("LAB_SECRET", "canary-canary");
    let error = stage.get(&cloud).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Denied && shown(&error).contains("AADSTS7000215"),
        "{}",
        shown(&error)
    );
    assert!(!shown(&error).contains("canary") && !format!("{cloud:?}").contains("canary"));
    stage.set("LAB_SECRET", &known.secret);
    stage.works(&cloud);
    assert!(!format!("{cloud:?}").contains(&known.secret));
    let stranger = format!(
        "{{tenant_id: {}, client_id: other, client_secret: 'env:LAB_SECRET'}}",
        known.tenant
    );
    let error = stage.get(&stage.cloud(&stranger, None)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Denied && shown(&error).contains("AADSTS700016"),
        "{}",
        shown(&error)
    );
}

#[test]
fn as_a_workload_whose_proof_is_renewed_in_place() {
    let stage = Stage::start();
    let known = stage.aml.principal();
    let cloud = stage.cloud("workload_identity", None);
    let error = stage.get(&cloud).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Refused && shown(&error).contains("AZURE_FEDERATED_TOKEN_FILE"),
        "{}",
        shown(&error)
    );
    let file = stage.folder.path().join("proof");
    stage.set("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap());
    stage.set("AZURE_TENANT_ID", &known.tenant);
    stage.set("AZURE_CLIENT_ID", &known.client);
    stage.set(
        "AZURE_AUTHORITY_HOST",
        &format!("{}/", stage.aml.endpoint()),
    );
    let cloud = stage.cloud("workload_identity", None);
    std::fs::write(&file, stage.aml.assertion(-10)).unwrap();
    let error = stage.get(&cloud).unwrap_err();
    let seen = shown(&error);
    assert!(
        error.kind() == ErrorKind::Denied && seen.contains("AADSTS700213"),
        "{seen}"
    );
    assert!(!seen.contains(&std::fs::read_to_string(&file).unwrap()));
    std::fs::write(&file, stage.aml.assertion(60)).unwrap();
    stage.works(&cloud);
    let named = format!(
        "{{workload_identity: {}, tenant_id: {}}}",
        known.client, known.tenant
    );
    stage.works(&stage.cloud(&named, None));
    assert_eq!(
        stage.asked("/oauth2/v2.0/token"),
        2,
        "both are the same application"
    );
}

#[test]
fn by_a_code_on_another_device() {
    let stage = Stage::start();
    let cloud = stage.cloud("device_code", None);
    let error = stage.get(&cloud).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.hints()[0].contains(SIGN_IN_COMMAND) && stage.messages().is_empty());
    assert!(stage.wait(cloud.sign_in(false)).is_err() && stage.asked("/devicecode") == 0);
    stage.aml.conditions(|conditions| {
        conditions.device.interval = 0;
        conditions.device.pending = 3;
    });
    stage.wait(cloud.sign_in(true)).unwrap();
    assert!(
        stage.messages()[0].contains("https://microsoft.com/devicelogin"),
        "{:?}",
        stage.messages()
    );
    assert_eq!(
        (
            stage.messages().len(),
            stage.asked("/organizations/oauth2/v2.0/token")
        ),
        (1, 4)
    );
    stage.works(&cloud);
    // Another process, and another service: nobody is asked.
    let other = stage.cloud("{device_code: ''}", None);
    stage.works(&other);
    stage.wait(other.token(Audience::Workspace)).unwrap();
    assert_eq!(
        (
            stage.asked("/devicecode"),
            stage.asked("/oauth2/v2.0/token")
        ),
        (1, 5)
    );
    stage
        .aml
        .conditions(|conditions| conditions.device.ended = true);
    let error = stage.wait(other.token(Audience::Vault)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Denied
            && shown(&error).contains("has ended")
            && shown(&error).contains(SIGN_IN_COMMAND)
    );
}

#[test]
fn a_code_that_nobody_enters_ends() {
    let stage = Stage::start();
    for (word, part) in [
        ("expired_token", "in time"),
        ("authorization_declined", "declined"),
        ("bad_verification_code", "refuses the code"),
    ] {
        stage.aml.conditions(|conditions| {
            conditions.device.interval = 0;
            conditions.device.pending = 1;
            conditions.device.refusal = Some(word.to_owned());
        });
        let error = stage
            .wait(stage.cloud("device_code", None).sign_in(true))
            .unwrap_err();
        assert!(
            error.kind() == ErrorKind::Denied && shown(&error).contains(part),
            "{}",
            shown(&error)
        );
    }
}

#[test]
fn the_login_service_may_want_it_slower() {
    let stage = Stage::start();
    stage.aml.conditions(|conditions| {
        conditions.device.interval = 0;
        conditions.device.slow_downs = 1;
    });
    let begun = std::time::Instant::now();
    stage
        .wait(stage.cloud("device_code", None).sign_in(true))
        .unwrap();
    assert!(
        begun.elapsed().as_secs() >= 5,
        "each following question waits five seconds more"
    );
}
