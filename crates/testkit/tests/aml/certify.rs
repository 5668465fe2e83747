//! Others' programs against the emulator.

use crate::judge;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use towline_testkit::aml::{Aml, Pair};
use towline_testkit::real::{self, Said};
use towline_testkit::until;

/// The folder of drivers.
const DRIVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/aml/certify");

/// Jobs on a page, fewer than the clients make.
const PAGE: usize = 7;

fn started() -> Aml {
    let aml = Aml::start();
    aml.conditions(|conditions| {
        conditions.page = PAGE;
        conditions.poll_after = None;
    });
    aml
}

/// A program that knows the emulator and nothing else of its surroundings.
fn program(aml: &Aml, file: &Path, home: &Path) -> Command {
    let mut command = Command::new(file);
    let scope = aml.scope();
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("TMPDIR", home)
        .env("PYTHONUTF8", "1")
        .current_dir(home);
    command.envs(aml.identity()).env("REQUESTS_CA_BUNDLE", aml.authority()).env("AZUREML_RUN_POLLING_INTERVAL_MIN", "1");
    command.env("AML_ENDPOINT", aml.endpoint()).env("AML_STORAGE", aml.storage_suffix()).env("AML_KEY", aml.azurite().key());
    command.env("AML_SUBSCRIPTION", scope.subscription).env("AML_GROUP", scope.group).env("AML_WORKSPACE", scope.workspace);
    command.env("AML_CLUSTER", aml.cluster()).env("AML_PAGE", PAGE.to_string()).env("AML_EXPIRED", aml.token(aml.endpoint(), -10));
    command.stdin(Stdio::null());
    command
}

/// What it said, a line each.
#[track_caller]
fn run(mut command: Command) -> Vec<String> {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{command:?}\n{said}\n{}", String::from_utf8_lossy(&stderr));
    said.lines().map(ToOwned::to_owned).collect()
}

fn driver(name: &str) -> OsString {
    Path::new(DRIVERS).join(name).into()
}

#[test]
fn microsofts_client_does_everything_and_the_validator_agrees() {
    let aml = started();
    let home = tempfile::tempdir().unwrap();
    let mut command = program(&aml, &real::part("azureml/bin/python"), home.path());
    command.args([OsString::from("-B"), driver("client.py")]);
    let said = run(command);
    assert_eq!(said.len(), 46, "{said:#?}");
    // Who asks in the user's own name sends a token for the workspace's services along.
    let with_token = |pair: &&Pair| pair.json["liveRequest"]["headers"]["x-azureml-token"] == "removed";
    assert_eq!(aml.recorded().iter().filter(with_token).map(|pair| pair.method.as_str()).collect::<Vec<_>>(), ["PUT"]);
    if let Some(spec) = judge::published() {
        let summary = judge::judge(&aml, &spec);
        assert!(summary["judged"].as_u64().unwrap() >= 200, "{summary}");
        assert!(summary["operations"].as_object().unwrap().len() >= 28, "{summary}");
    }
}

/// Older services name no output for a run's artifacts, and give no keys away: logs are then found in run history.
#[test]
fn microsofts_client_follows_logs_by_run_history() {
    let aml = started();
    aml.conditions(|conditions| {
        conditions.default_output = false;
        conditions.expirable_secrets = true;
    });
    let home = tempfile::tempdir().unwrap();
    let mut command = program(&aml, &real::part("azureml/bin/python"), home.path());
    command.args([OsString::from("-B"), driver("client.py")]).args(["job_plain", "job_log", "job_stream", "job_distributed", "job_failing"]);
    assert_eq!(run(command).len(), 5);
    let details = aml.recorded().iter().filter(|pair| pair.target.contains("/details")).count();
    assert!(details >= 2, "{details}");
}

/// The real `az`, signed in as a managed identity, with a home of its own.
fn az(aml: &Aml, home: &Path, words: &[&str]) -> Said {
    let mut command = program(aml, &real::part("az/bin/python"), home);
    command.args(["-B", "-m", "azure.cli"]).args(words).args(["--output", "json", "--only-show-errors"]);
    command.env("AZURE_CONFIG_DIR", home.join("az")).env("AZURE_CORE_COLLECT_TELEMETRY", "false").env("AZURE_CORE_INSTANCE_DISCOVERY", "false");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { good: status.success(), stdout: text(&stdout), stderr: text(&stderr) }
}

#[test]
fn az_signs_in_and_drives_a_job() {
    let aml = started();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let good = |words: &[&str]| {
        let said = az(&aml, home, words);
        assert!(said.good, "{words:?}: {said:?}");
        said
    };
    good(&["cloud", "register", "--name", "TowCloud", "--endpoint-resource-manager", aml.endpoint()]);
    good(&["cloud", "set", "--name", "TowCloud"]);
    let signed_in = good(&["login", "--identity"]).json();
    assert_eq!(signed_in[0]["id"], aml.scope().subscription.as_str());
    let token = good(&["account", "get-access-token", "--resource", "https://ml.azure.com"]).json();
    assert_eq!(token["accessToken"].as_str().unwrap().split('.').count(), 3);
    let job = format!("{}/jobs/by-az?api-version=2024-04-01", aml.scope().id());
    let body =
        json!({"properties": {"jobType": "Command", "command": "echo by az", "environmentId": "azureml://registries/azureml/environments/e/versions/1"}});
    let body = body.to_string();
    let made = good(&["rest", "--method", "put", "--url", &job, "--body", &body]).json();
    assert_eq!(made["properties"]["status"], "NotStarted");
    let ended = until("a job to end", || {
        let found = good(&["rest", "--url", &job]).json();
        (found["properties"]["status"] == "Completed").then_some(found)
    });
    assert_eq!(ended["name"], "by-az");
    let other = az(&aml, home, &["rest", "--url", &job.replace("by-az", "nothing")]);
    assert!(!other.good && other.stderr.contains("Job nothing not found"), "{other:?}");
    let another = az(&aml, home, &["rest", "--method", "put", "--url", &job, "--body", &body.replace("echo", "print")]);
    assert!(!another.good && another.stderr.contains("JobPropertyImmutable"), "{another:?}");
    let listed = good(&["rest", "--url", &job.replace("/by-az", "")]).json();
    assert_eq!(listed["value"].as_array().unwrap().len(), 1);
}
