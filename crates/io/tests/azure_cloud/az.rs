//! The real `az`, signed in to the emulator.

use crate::stage::{Stage, shown};
use std::path::PathBuf;
use std::process::Command;
use towline_core::ErrorKind;
use towline_core::cloud::Audience;

/// Puts the real `az` on the path.
fn installed(stage: &Stage) -> PathBuf {
    let bin = stage.folder.path().join("bin");
    stage.set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    stage.aml.install_az(&bin)
}

#[test]
fn the_login_of_az_is_used_and_a_missing_one_is_an_error() {
    let stage = Stage::start();
    let profile = stage.folder.path().join("login of the lab");
    let cloud = || stage.cloud("azure_cli", Some(profile.to_str().unwrap()));
    stage.set("PATH", "/nowhere");
    let error = stage.get(&cloud()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unsupported
            && shown(&error).contains("Azure CLI not installed."),
        "{}",
        shown(&error)
    );
    let az = installed(&stage);
    let error = stage.get(&cloud()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{}", shown(&error));
    assert_eq!(
        error.hints(),
        [format!(
            "sign in: AZURE_CONFIG_DIR='{}' az login",
            profile.display()
        )]
    );
    let run = |words: &[&str]| {
        let output = Command::new(&az)
            .args(words)
            .env("AZURE_CONFIG_DIR", &profile)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    stage.aml.az_login(&az, &profile);
    let first = cloud();
    stage.works(&first);
    let token = stage.wait(first.token(Audience::Management)).unwrap();
    assert!(!format!("{first:?}").contains(token.expose()));
    // Another process has the same token and does not start `az`.
    assert_eq!(
        stage.wait(cloud().token(Audience::Management)).unwrap(),
        token
    );
    // After `az logout` there is no token here either.
    run(&["logout"]);
    let error = stage.get(&cloud()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Denied && shown(&error).contains("az login"),
        "{}",
        shown(&error)
    );
}
