//! Microsoft's validator of traffic, used if the published description is present.

use super::Aml;
use crate::ability::not_run;
use crate::real;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const JUDGE_DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/aml/certify/judge.js");

/// Differences between Microsoft's client and Microsoft's description.
const CLIENT_DIFFERENCES: [(&str, &str); 1] = [(
    "CodeVersions_CreateOrUpdate",
    "/properties/properties/hash_version",
)];

/// Fields of run history that are newer than its published description; Microsoft's client has them
/// all.
const NEWER_FIELDS: [&str; 14] = [
    "runUuid",
    "rootRunId",
    "rootRunUuid",
    "createdTimeUtc",
    "lastModifiedUtc",
    "displayName",
    "parameters",
    "services",
    "inputs",
    "outputs",
    "inputDatasets",
    "outputDatasets",
    "runNumber",
    "messageParameters",
];

/// The folder of the published description, of which no copy is kept here.
pub fn published() -> Option<PathBuf> {
    let folder = std::env::var_os("TOW_AZUREML_SPEC").map(PathBuf::from);
    if folder.is_none() {
        not_run(
            "holding against the published description of Azure ML: TOW_AZUREML_SPEC does not say \
                where it is",
        );
    }
    folder
}

/// Checks the recorded traffic against the published description; the number of checked requests by
/// kind.
#[track_caller]
pub fn judge(aml: &Aml, spec: &Path) -> Value {
    let home = tempfile::tempdir().unwrap();
    let pairs = home.path().join("pairs.jsonl");
    aml.write_recorded(&pairs).unwrap();
    let mut command = Command::new("node");
    // It writes a log into the home.
    command
        .env("HOME", home.path())
        .current_dir(home.path())
        .arg(JUDGE_DRIVER)
        .arg(real::part("oav/node_modules/oav"))
        .arg(spec)
        .arg(pairs);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut findings: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let summary = findings.pop().unwrap();
    let operation = |found: &Value| found["operation"].as_str().unwrap_or_default().to_owned();
    let place = |found: &Value| found["where"][0].as_str().unwrap_or_default().to_owned();
    let differs = |found: &Value| {
        CLIENT_DIFFERENCES.contains(&(operation(found).as_str(), place(found).as_str()))
    };
    let field = |found: &Value| {
        place(found)
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let newer = |found: &Value| {
        found["code"] == "OBJECT_ADDITIONAL_PROPERTIES"
            && operation(found).starts_with("Runs_")
            && NEWER_FIELDS.contains(&field(found).as_str())
    };
    findings.retain(|found| !differs(found) && !newer(found));
    assert!(findings.is_empty(), "{findings:#?}");
    summary
}
