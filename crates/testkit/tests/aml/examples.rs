//! The examples of the published description: all can be read, and their bodies are accepted.

use crate::ask::Asker;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use towline_testkit::aml::judge;
use towline_testkit::until;

const EXAMPLES_FOLDER: &str = "specification/machinelearningservices/resource-manager/Microsoft.MachineLearningServices/stable/2024-04-01/examples";

/// Examples by the path they are for, below a workspace.
const EXAMPLES_BY_PATH: [(&str, &str); 7] = [
    (
        "Workspace/CodeVersion/createOrGetStartPendingUpload.json",
        "codes/{name}/versions/{version}/startPendingUpload",
    ),
    (
        "Workspace/CodeVersion/createOrUpdate.json",
        "codes/{name}/versions/{version}",
    ),
    (
        "Workspace/EnvironmentVersion/createOrUpdate.json",
        "environments/{name}/versions/{version}",
    ),
    (
        "Workspace/DataVersionBase/createOrUpdate.json",
        "data/{name}/versions/{version}",
    ),
    ("Datastore", "datastores/{name}"),
    ("Job", "jobs/{id}"),
    ("Compute/createOrUpdate", "computes/{computeName}"),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn published_examples_are_taken() {
    let Some(spec) = judge::published() else {
        return;
    };
    let folder = spec.join(EXAMPLES_FOLDER);
    let all = files(&folder);
    assert!(all.len() >= 244, "{}", all.len());
    for file in &all {
        assert!(read(file)["parameters"].is_object(), "{}", file.display());
    }
    let asker = Asker::start();
    let mut many = 0;
    for (under, path) in EXAMPLES_BY_PATH {
        let creates = |file: &&PathBuf| {
            let name = file
                .strip_prefix(&folder)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            name == under
                || (name.starts_with(&format!("{under}/"))
                    && name.to_lowercase().contains("createorupdate"))
        };
        for file in all.iter().filter(creates) {
            take(&asker, &read(file), path, file);
            many += 1;
        }
    }
    assert_eq!(many, 4 + 4 + 4 + 9, "examples");
    let summary = judge::judge(&asker.aml, &spec);
    assert!(summary["judged"].as_u64().unwrap() >= 40, "{summary}");
}

/// Puts an example under its own names, gets it back, and deletes it so that the next can use the
/// name.
#[track_caller]
fn take(asker: &Asker, example: &Value, path: &str, file: &Path) {
    let parameters = &example["parameters"];
    let word = |name: &str| parameters[name].as_str().unwrap_or_default().to_owned();
    let workspace = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.MachineLearningServices/workspaces/{}",
        word("subscriptionId"),
        word("resourceGroupName"),
        word("workspaceName")
    );
    let version = "api-version=2024-04-01";
    let brought = json!({"location": "westus3", "identity": {"type": "SystemAssigned"}, "properties": {"friendlyName": "examples"}});
    assert_eq!(
        asker
            .ask("PUT", &format!("{workspace}?{version}"), Some(&brought))
            .status,
        200
    );
    let filled = ["name", "version", "id", "computeName"]
        .iter()
        .fold(path.to_owned(), |path, name| {
            path.replace(&format!("{{{name}}}"), &word(name))
        });
    let (address, upload) = (
        format!("{workspace}/{filled}?{version}"),
        filled.ends_with("startPendingUpload"),
    );
    let body = parameters
        .get("body")
        .or_else(|| parameters.get("parameters"))
        .unwrap();
    let said = asker.ask(if upload { "POST" } else { "PUT" }, &address, Some(body));
    assert!(
        matches!(said.status, 200 | 201),
        "{}: {said:?}",
        file.display()
    );
    if upload {
        return;
    }
    let found = asker.get(&address);
    assert_eq!(found.status, 200, "{}: {found:?}", file.display());
    kept(&body["properties"], &found.json["properties"], file);
    // A running job has to end first.
    if filled.starts_with("jobs/") {
        until("a job to end", || {
            matches!(
                asker.get(&address).json["properties"]["status"].as_str()?,
                "Completed" | "Failed" | "Canceled"
            )
            .then_some(())
        });
    }
    let address = if filled.starts_with("computes/") {
        format!("{address}&underlyingResourceAction=Delete")
    } else {
        address
    };
    assert_eq!(asker.ask("DELETE", &address, None).status, 200);
}

/// The resource is shown as it was put, except for secrets.
#[track_caller]
fn kept(put: &Value, shown: &Value, file: &Path) {
    for (name, value) in put.as_object().into_iter().flatten() {
        match value {
            Value::Object(_)
                if !["credentials", "services", "userAccountCredentials"]
                    .contains(&name.as_str()) =>
            {
                kept(value, &shown[name], file);
            }
            Value::Null | Value::Object(_) => {}
            value => assert_eq!(value, &shown[name], "{} {name}", file.display()),
        }
    }
}
