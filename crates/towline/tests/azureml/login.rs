//! `tow login` and `tow logout`, without the Azure CLI.

use crate::lab::Lab;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Stdio;

/// A laptop without `az` and without any identity. `own` and `other` are the same workspace and name
/// no credential; `code` names one.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.home.unset("IDENTITY_ENDPOINT");
    lab.home.unset("IDENTITY_HEADER");
    lab.home.set("PATH", "/usr/bin:/bin");
    let scope = lab.aml.scope();
    let place = format!(
        "kind: azureml, endpoint: '{}', subscription: {}, resource_group: {}, workspace: {}, \
            compute: cpu",
        lab.aml.endpoint(),
        scope.subscription,
        scope.group,
        scope.workspace
    );
    lab.home.configure(&format!(
        "default_cluster: own\nclusters:\n  own: {{{place}}}\n  other: {{{place}}}\n  code: \
            {{{place}, credential: device_code}}\n  cli: {{{place}, credential: azure_cli}}\n  \
                far: {{kind: slurm, host: login.example}}\n",
    ));
    lab.aml.conditions(|conditions| {
        conditions.device.interval = 0;
        conditions.device.pending = 2;
    });
    lab
}

/// Files of the state folder that hold a sign-in.
fn stored(lab: &Lab) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(lab.home.state().azure()) else {
        return Vec::new();
    };
    folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| fs::read_to_string(path).unwrap().contains("\"method\":"))
        .collect()
}

fn secret(path: &PathBuf) -> String {
    let value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    value["refresh"].as_str().unwrap().to_owned()
}

#[test]
fn a_sign_in_is_stored_used_by_the_daemon_and_removed() {
    let lab = lab();
    let nobody = lab.tow(["submit", "true"]);
    assert!(
        nobody.code == 123
            && nobody
                .stderr
                .contains("or without the Azure CLI: tow login own"),
        "{nobody:?}"
    );
    let shown = lab.tow(["login"]).ok();
    assert!(
        shown
            .stderr
            .contains("https://microsoft.com/devicelogin and enter the code"),
        "{shown:?}"
    );
    assert!(
        shown
            .stdout
            .starts_with("own: signed in as alice@example.com (tenant ")
            && shown.stdout.contains("a file that only you can read"),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("it serves other too"), "{shown:?}");
    let files = stored(&lab);
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().mode() & 0o777, 0o600);
    let refresh = secret(&files[0]);
    assert!(!shown.stdout.contains(&refresh) && !shown.stderr.contains(&refresh));

    // The client and the daemon use it, and so does the cluster beside it.
    let said = lab.tow(["run", "echo", "hello"]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (0, "hello\n"),
        "{said:?}"
    );
    let id = lab
        .tow(["-c", "other", "submit", "sh", "-c", "sleep 2; echo late"])
        .ok()
        .id();
    lab.home.kill_daemon();
    assert_eq!(lab.ended(&id)["state"], "succeeded");

    let status = lab.tow(["login", "--status", "--json"]);
    let status = status.json();
    let of = |name: &str| {
        let all = status["sign_ins"].as_array().unwrap();
        all.iter()
            .find(|one| one["cluster"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(of("own")["signed_in_as"]["name"], "alice@example.com");
    assert_eq!(of("own")["stored_in"], "file");
    assert_eq!(of("own")["configured"], false);
    assert_eq!(of("own")["also_for"], serde_json::json!(["other"]));
    assert!(of("own")["token_until"].as_str().unwrap().ends_with('Z'));
    assert_eq!(of("code")["signed_in"], false, "what is configured wins");
    assert_eq!(of("cli")["signed_in"], false);
    assert_eq!(lab.tow(["login", "--status", "own"]).code, 0);
    assert_eq!(lab.tow(["login", "--status", "code"]).code, 123);

    let out = lab.tow(["logout", "other"]).ok();
    assert!(
        out.stdout
            .contains("the sign-in of alice@example.com is removed, also for own"),
        "{out:?}"
    );
    assert!(stored(&lab).is_empty());
    let again = lab.tow(["logout", "--json"]).ok().json();
    assert_eq!(again["signed_out"], false, "nothing to remove is no error");
    assert_eq!(lab.tow(["nodes"]).code, 123);
    let found =
        towline_testkit::exposure::files_holding(lab.home.state().root(), refresh.as_bytes());
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn lines_of_json_show_the_code_first() {
    let lab = lab();
    let shown = lab.tow(["login", "code", "--json"]).ok();
    let lines: Vec<Value> = shown
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{shown:?}");
    assert_eq!(lines[0]["address"], "https://microsoft.com/devicelogin");
    assert_eq!(lines[0]["code"].as_str().unwrap().len(), 8);
    assert_eq!(lines[1]["method"], "device_code");
    assert_eq!(lines[1]["configured"], true);
    assert!(!shown.stdout.contains(&secret(&stored(&lab)[0])));
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let lab = lab();
    lab.aml
        .conditions(|conditions| conditions.device.pending = usize::MAX);
    let mut tow = lab
        .home
        .command(["login"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(tow.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("enter the code"), "{line}");
    kill_process(Pid::from_child(&tow), Signal::INT).unwrap();
    let code = tow.wait().unwrap().code();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("nothing was stored"), "{rest}");
    assert!(stored(&lab).is_empty());
}

#[test]
fn a_certificate_of_a_service_principal_signs_in() {
    let lab = lab();
    let known = lab.aml.principal();
    lab.home.write("app.pem", known.certificate);
    let file = lab.home.project().join("app.pem");
    let ask = || {
        lab.tow([
            "login",
            "own",
            "--certificate",
            "app.pem",
            "--client-id",
            &known.client,
            "--tenant",
            &known.tenant,
        ])
    };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let wide = ask();
    assert!(
        wide.code == 121 && wide.stderr.contains("can be read by others"),
        "{wide:?}"
    );
    assert!(stored(&lab).is_empty());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let shown = ask().ok();
    assert!(shown.stdout.contains(&known.client), "{shown:?}");
    let said = lab.tow(["run", "echo", "hello"]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (0, "hello\n"),
        "{said:?}"
    );
    let status = lab.tow(["login", "--status", "own", "--json"]).ok().json();
    assert_eq!(status["sign_ins"][0]["method"], "certificate");
    // The key stays where it is.
    let key = known.certificate.lines().nth(2).unwrap();
    let found = towline_testkit::exposure::files_holding(lab.home.state().root(), key.as_bytes());
    assert!(found.is_empty(), "{found:?}");
    for traffic in lab.aml.traffic() {
        assert!(!traffic.sent.contains(key), "{}", traffic.target);
    }
    lab.tow(["logout"]).ok();
    assert!(file.exists());
    let lacks = lab.tow(["login", "--certificate", "app.pem"]);
    assert_eq!(lacks.code, 120, "{lacks:?}");
}

#[test]
fn what_is_used_elsewhere_is_said() {
    let lab = lab();
    for (words, part) in [
        (&["login", "far"][..], "ssh signs in to `login.example`"),
        (&["logout", "far"], "ssh signs in to `login.example`"),
        (&["login", "local"], "is this machine"),
        (&["login", "cli"], "the Azure CLI signs in"),
        (
            &["login", "code", "--tenant", "t"],
            "the configuration says `credential` (device_code), and that wins",
        ),
    ] {
        let refused = lab.tow(words);
        assert!(
            refused.code == 123 && refused.stderr.contains(part),
            "{words:?}: {refused:?}"
        );
    }
    assert_eq!(lab.tow(["login", "nowhere"]).code, 122);
    lab.home.configure("");
    let here = lab.tow(["login"]);
    assert_eq!(here.code, 123, "{here:?}");
}

#[test]
fn a_second_factor_names_the_scope_to_sign_in_with() {
    let lab = lab();
    lab.tow(["login"]).ok();
    lab.aml
        .conditions(|conditions| conditions.insufficient_claims = true);
    let refused = lab.tow(["nodes"]);
    assert!(
        refused.code == 123
            && refused.stderr.contains(&format!(
                "sign in again with this scope: tow login own --scope {}/.default",
                lab.aml.endpoint()
            )),
        "{refused:?}"
    );
}
