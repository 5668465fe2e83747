//! A sign-in that is stored: `tow login` and `tow logout`.

use crate::stage::{SIGN_IN_COMMAND, Stage, shown};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Mutex;
use towline_core::cloud::{Audience, Call, Method};
use towline_core::{Error, ErrorKind, Result};
use towline_io::azure::cloud::Cloud;
use towline_io::azure::identity::{DevicePrompt, LoginRequest, SignInState, Watcher};
use towline_testkit::aml::{Trouble, When};
use towline_testkit::disk::Disk;

/// Signs in anew; the shown code is entered at once.
fn login(stage: &Stage, cloud: &Cloud, request: &LoginRequest) -> Result<Option<SignInState>> {
    stage.aml.conditions(|conditions| {
        conditions.device.interval = 0;
        conditions.device.pending = 1;
    });
    let shown = Mutex::new(Vec::<DevicePrompt>::new());
    let watcher = Watcher {
        show: &|prompt| shown.lock().unwrap().push(prompt.clone()),
        is_stopped: &|| false,
    };
    let state = stage.wait(cloud.login(request, &watcher));
    for prompt in shown.lock().unwrap().iter() {
        assert_eq!(prompt.address, "https://microsoft.com/devicelogin");
        assert_eq!(prompt.code.len(), 8);
        assert!(prompt.message.contains(&prompt.code));
    }
    state
}

fn by_code(stage: &Stage, cloud: &Cloud) -> SignInState {
    login(stage, cloud, &LoginRequest::default())
        .unwrap()
        .unwrap()
}

/// Files of the folder that hold a refresh token.
fn stored(stage: &Stage) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(stage.cache()) else {
        return Vec::new();
    };
    let paths = folder.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("\"method\":")))
        .collect()
}

fn refresh_token(path: &PathBuf) -> String {
    let value: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    value["refresh"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_stored_sign_in_counts_where_nothing_is_configured() {
    let stage = Stage::start();
    let cloud = stage.unset();
    let nobody = stage.get(&cloud).unwrap_err();
    assert!(
        shown(&nobody).contains(&format!("or without the Azure CLI: {SIGN_IN_COMMAND}")),
        "{}",
        shown(&nobody)
    );
    let state = by_code(&stage, &cloud);
    assert_eq!(state.method, "device_code");
    assert_eq!(state.place, Some("file"));
    assert!(!state.is_configured && state.until.is_some() && state.since.is_some());
    assert_eq!(state.who.unwrap().name, "alice@example.com");
    let files = stored(&stage);
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().mode() & 0o777, 0o600);
    stage.works(&cloud);
    // Another process, another service: nobody is asked.
    let other = stage.unset();
    stage.works(&other);
    stage.wait(other.token(Audience::Vault)).unwrap();
    assert_eq!(stage.asked("/devicecode"), 1);
    // A configured credential wins.
    let configured = stage.cloud("managed_identity", None);
    let state = stage.wait(configured.sign_in_state()).unwrap();
    assert_eq!(
        (state.method, state.is_configured),
        ("managed_identity", true)
    );
    let error = stage
        .get(&stage.cloud("device_code", None))
        .expect_err("a sign-in of its own");
    assert_eq!(error.kind(), ErrorKind::Denied);

    let out = stage.wait(other.logout()).unwrap();
    assert!(out.was_signed_in);
    assert_eq!(out.name.as_deref(), Some("alice@example.com"));
    assert!(stored(&stage).is_empty());
    for entry in fs::read_dir(stage.cache()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("\"token\"") || text.contains("\"login\":null"),
            "{} is left: {text}",
            path.display()
        );
    }
    // A process that runs on, as the daemon does, has no token any more.
    assert!(stage.get(&cloud).is_err());
    let again = stage.wait(other.logout()).unwrap();
    assert!(!again.was_signed_in, "nothing to remove is no error");
}

#[test]
fn a_new_sign_in_counts_at_once_in_a_process_that_runs_on() {
    let stage = Stage::start();
    let daemon = stage.unset();
    by_code(&stage, &stage.unset());
    stage.works(&daemon);
    let before = stage.asked("/oauth2/v2.0/token");
    let principal = stage.aml.principal();
    let pem = pem(&stage);
    let request = LoginRequest {
        tenant: Some(principal.tenant.clone()),
        client: Some(principal.client.clone()),
        certificate: Some(pem),
        scope: None,
    };
    login(&stage, &stage.unset(), &request).unwrap().unwrap();
    stage.works(&daemon);
    let state = stage.wait(daemon.sign_in_state()).unwrap();
    assert_eq!(state.method, "certificate");
    assert_eq!(state.who.unwrap().name, principal.client);
    assert_eq!(
        stage.asked("/oauth2/v2.0/token"),
        before + 1,
        "the token of the certificate is shared"
    );
}

fn pem(stage: &Stage) -> PathBuf {
    let path = stage.folder.path().join("app.pem");
    fs::write(&path, stage.aml.principal().certificate).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[test]
fn a_certificate_signs_and_its_key_goes_nowhere() {
    let stage = Stage::start();
    let known = stage.aml.principal();
    let path = pem(&stage);
    let credential = format!(
        "{{tenant_id: {}, client_id: {}, client_certificate: 'file:{}'}}",
        known.tenant,
        known.client,
        path.display()
    );
    stage.works(&stage.cloud(&credential, None));
    let key = known.certificate.lines().nth(2).unwrap();
    for traffic in stage.aml.traffic() {
        assert!(!traffic.sent.contains(key), "{}", traffic.target);
    }
    // Others could read the key.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_dir_all(stage.cache()).unwrap();
    let error = stage.get(&stage.cloud(&credential, None)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Config && shown(&error).contains("can be read by others"),
        "{}",
        shown(&error)
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    // Every letter of the line is another one: whatever key was made, this is none.
    let damaged: String = key
        .chars()
        .map(|letter| if letter == 'A' { 'B' } else { 'A' })
        .collect();
    fs::write(&path, known.certificate.replace(key, &damaged)).unwrap();
    let error = stage.get(&stage.cloud(&credential, None)).unwrap_err();
    assert!(!shown(&error).contains(&key[..20]), "{}", shown(&error));
}

/// Each refresh token is good once. Whoever loses one has lost the sign-in.
#[test]
fn many_at_once_renew_without_losing_a_token_that_is_good_once() {
    let stage = Stage::start();
    by_code(&stage, &stage.unset());
    stage.aml.conditions(|conditions| {
        conditions.device.good_once = true;
        conditions.token_lifetime = 1;
    });
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|number| {
                let stage = &stage;
                scope.spawn(move || {
                    let cloud = stage.unset();
                    let audience = [Audience::Vault, Audience::Workspace, Audience::Storage];
                    for audience in audience.iter().cycle().skip(number).take(3) {
                        stage.wait(cloud.token(*audience)).unwrap();
                    }
                })
            })
            .collect();
        for one in all {
            one.join().unwrap();
        }
    });
    // It still works, for a process that knows only the files.
    stage
        .aml
        .conditions(|conditions| conditions.token_lifetime = 3600);
    stage.works(&stage.unset());
    assert_eq!(stage.asked("/devicecode"), 1);
}

#[test]
fn files_of_strangers_wide_files_and_links_are_not_used() {
    let stage = Stage::start();
    by_code(&stage, &stage.unset());
    let path = stored(&stage).remove(0);
    let canary = refresh_token(&path);
    let refused = |part: &str| {
        let error = stage.get(&stage.unset()).unwrap_err();
        let seen = shown(&error);
        assert_eq!(error.kind(), ErrorKind::Denied, "{seen}");
        assert!(
            seen.contains(part) && seen.contains(SIGN_IN_COMMAND),
            "{seen}"
        );
        assert!(!seen.contains(&canary));
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    refused("can be read by others (mode 644)");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let target = stage.folder.path().join("elsewhere");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    refused("is a link");
    // Signing out removes the link and not its target.
    let out = stage.wait(stage.unset().logout()).unwrap();
    assert!(out.was_signed_in && target.exists() && !path.is_symlink());
    if rustix::process::geteuid().is_root() {
        fs::rename(&target, &path).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        refused("belongs to somebody else");
    }
    by_code(&stage, &stage.unset());
    stage.works(&stage.unset());
}

#[test]
fn a_token_that_cannot_be_saved_is_told_and_the_older_one_stays() {
    let stage = Stage::start();
    fs::create_dir_all(stage.cache()).unwrap();
    let Some(disk) = Disk::mount(&stage.cache(), 256) else {
        return towline_testkit::ability::not_run("a full disk: this user may not mount one");
    };
    by_code(&stage, &stage.unset());
    let path = stored(&stage).remove(0);
    let before = refresh_token(&path);
    disk.leave(0);
    stage.wait(stage.unset().token(Audience::Vault)).unwrap();
    let told = stage.messages().join("\n");
    assert!(
        told.contains("cannot be stored") && told.contains(SIGN_IN_COMMAND),
        "{told}"
    );
    assert!(!told.contains(&before));
    assert_eq!(refresh_token(&path), before, "whole, and as it was");
    // A new sign-in that cannot be stored is an error, and the older one stays as well.
    let error = login(&stage, &stage.unset(), &LoginRequest::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoRoom, "{}", shown(&error));
    assert_eq!(refresh_token(&path), before);
    disk.relieve();
    stage.works(&stage.unset());
}

#[test]
fn a_second_factor_is_asked_for_by_name() {
    let stage = Stage::start();
    by_code(&stage, &stage.unset());
    stage.aml.conditions(|conditions| {
        conditions.device.wants_factor = Some("https://ml.azure.com".to_owned());
    });
    let seen = |error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Denied);
        shown(error)
    };
    let error = stage
        .wait(stage.unset().token(Audience::Workspace))
        .unwrap_err();
    let text = seen(&error);
    assert!(text.contains("AADSTS50076"), "{text}");
    assert!(
        text.contains(&format!(
            "{SIGN_IN_COMMAND} --scope https://ml.azure.com/.default"
        )),
        "{text}"
    );
    // The resource manager itself may want more of a token that it accepts.
    stage
        .aml
        .conditions(|conditions| conditions.insufficient_claims = true);
    let before = stage.asked("/oauth2/v2.0/token");
    let cloud = stage.unset();
    let call: Call = stage.question(Method::Get, "");
    let error = stage.wait(cloud.call(&call)).unwrap_err();
    let text = seen(&error);
    assert!(
        text.contains("insufficient_claims") && text.contains("sign in again with this scope"),
        "{text}"
    );
    assert_eq!(
        stage.asked("/oauth2/v2.0/token"),
        before,
        "another token by the same sign-in would be refused too"
    );
    stage
        .aml
        .conditions(|conditions| conditions.insufficient_claims = false);
    // Signing in with the scope ends it.
    let request = LoginRequest {
        scope: Some("https://ml.azure.com/.default".to_owned()),
        ..LoginRequest::default()
    };
    login(&stage, &stage.unset(), &request).unwrap().unwrap();
    stage
        .wait(stage.unset().token(Audience::Workspace))
        .unwrap();
}

#[test]
fn a_sign_in_that_is_stopped_or_refused_leaves_nothing() {
    let stage = Stage::start();
    let cloud = stage.unset();
    stage.aml.conditions(|conditions| {
        conditions.device.interval = 0;
        conditions.device.pending = usize::MAX;
    });
    let asked = || stage.asked("/oauth2/v2.0/token");
    let watcher = Watcher {
        show: &|_| {},
        is_stopped: &|| asked() >= 2,
    };
    let stopped = stage.wait(cloud.login(&LoginRequest::default(), &watcher));
    assert!(stopped.unwrap().is_none());
    assert!(stored(&stage).is_empty());
    for (word, part) in [("expired_token", "in time"), ("access_denied", "declined")] {
        stage.aml.conditions(|conditions| {
            conditions.device.pending = 0;
            conditions.device.refusal = Some(word.to_owned());
        });
        let error = login(&stage, &cloud, &LoginRequest::default()).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Denied && shown(&error).contains(part),
            "{}",
            shown(&error)
        );
        assert!(stored(&stage).is_empty());
    }
    // A service that does not answer is no refusal: the code is asked about again.
    stage.aml.conditions(|conditions| {
        conditions.device.refusal = None;
    });
    stage
        .aml
        .trouble(1, "POST", "/oauth2/v2.0/token", Trouble::Cut, When::Before);
    by_code(&stage, &cloud);
}

/// A clock that was set back makes an old token look fresh: the service refuses it, and the
/// sign-in gives another.
#[test]
fn a_clock_that_jumps_costs_one_question() {
    let stage = Stage::start();
    by_code(&stage, &stage.unset());
    let cloud = stage.unset();
    stage.works(&cloud);
    let fresh = stage.asked("/oauth2/v2.0/token");
    let is_token = |text: &str| text.contains("\"token\"") && !text.contains("\"login\":null");
    let mut changed = 0;
    for entry in fs::read_dir(stage.cache()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        if !is_token(&text) {
            continue;
        }
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["token"] = serde_json::json!(stage.aml.token(stage.aml.endpoint(), -600));
        fs::write(&path, value.to_string()).unwrap();
        changed += 1;
    }
    assert_eq!(changed, 1);
    stage.works(&stage.unset());
    assert_eq!(stage.asked("/oauth2/v2.0/token"), fresh + 1);
}

/// A keyring that a script stands in for.
#[test]
fn the_refresh_token_is_in_the_keyring_where_there_is_one() {
    let stage = Stage::start();
    let folder = stage.folder.path().join("keyring");
    fs::create_dir(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin\ncd {}\ntest -e locked && {{ echo 'it is locked' >&2; exit \
            1; }}\ncase $1 in\nstore) cat >\"entry-$4\" ;;\nlookup) test -f \"entry-$3\" && cat \
                \"entry-$3\" ;;\nclear) rm -f \"entry-$3\" ;;\nesac\n",
        folder.display()
    );
    towline_testkit::program(&folder.join("secret-tool"), &script);
    stage.set("PATH", folder.to_str().unwrap());
    let entries = || {
        fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with("entry-")
            })
            .collect::<Vec<_>>()
    };
    let state = by_code(&stage, &stage.unset());
    assert_eq!(state.place, Some("keyring"));
    let entry = entries().remove(0);
    let first = fs::read_to_string(&entry).unwrap();
    let path = stored(&stage).remove(0);
    assert!(!fs::read_to_string(&path).unwrap().contains(&first));
    // It rotates there.
    stage
        .aml
        .conditions(|conditions| conditions.device.good_once = true);
    stage
        .wait(stage.unset().token(Audience::Workspace))
        .unwrap();
    stage.wait(stage.unset().token(Audience::Vault)).unwrap();
    assert_ne!(fs::read_to_string(&entry).unwrap(), first);
    // A locked keyring says nothing of the sign-in.
    fs::write(folder.join("locked"), "").unwrap();
    let error = stage
        .wait(stage.unset().token(Audience::Storage))
        .unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unreachable && shown(&error).contains("it is locked"),
        "{}",
        shown(&error)
    );
    let error = stage.wait(stage.unset().logout()).unwrap_err();
    assert!(
        shown(&error).contains("stays in the keyring"),
        "{}",
        shown(&error)
    );
    fs::remove_file(folder.join("locked")).unwrap();
    assert!(stage.wait(stage.unset().logout()).unwrap().was_signed_in);
    assert!(entries().is_empty() && stored(&stage).is_empty());
    // One that takes nothing is none.
    fs::write(folder.join("locked"), "").unwrap();
    assert_eq!(by_code(&stage, &stage.unset()).place, Some("file"));
}
