//! Datastores: names of containers, with their credentials.

use super::answer::{Answer, Outcome, good, invalid, not_found};
use super::blobs::Blobs;
use super::call::Call;
use super::ids::Scope;
use super::routes::{not_allowed, nowhere};
use super::workspace::{Entry, Workspace};
use super::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use towline_host::clock;

/// The container of logs and artifacts of runs.
pub(super) const ARTIFACTS_CONTAINER: &str = "azureml";

/// The two datastores that a new workspace has.
pub(super) fn first(workspace: &str, blobs: &Blobs) -> BTreeMap<String, Entry> {
    let store = |container: &str, default: bool| {
        let properties = json!({
            "datastoreType": "AzureBlob", "accountName": blobs.account.name, "containerName": container, "endpoint": blobs.suffix(), "protocol": "https",
            "credentials": {"credentialsType": "AccountKey", "secrets": {"secretsType": "AccountKey", "key": blobs.account.key}},
            "serviceDataAccessAuthIdentity": "None", "isDefault": default, "tags": {}, "properties": {},
        });
        Entry::new(properties)
    };
    let container = format!("azureml-blobstore-{workspace}");
    BTreeMap::from([
        ("workspaceblobstore".to_owned(), store(&container, true)),
        (
            "workspaceartifactstore".to_owned(),
            store(ARTIFACTS_CONTAINER, false),
        ),
    ])
}

/// Container and path of `azureml://datastores/NAME/paths/PATH`, in its short and its long form.
pub(super) fn place(workspace: &Workspace, address: &str) -> Option<(String, String)> {
    let (_, rest) = address
        .strip_prefix("azureml://")?
        .split_once("datastores/")
        .or_else(|| Some(("", address.strip_prefix("azureml://datastores/")?)))?;
    let (name, path) = rest.split_once('/')?;
    let path = path.strip_prefix("paths/").unwrap_or(path);
    let container = workspace.datastores.get(name)?.properties["containerName"].as_str()?;
    Some((container.to_owned(), path.to_owned()))
}

pub(super) fn route(world: &World, call: &Call, scope: &Scope, words: &[&str]) -> Outcome {
    let unseen = world.conditions().unseen;
    let (expirable, forbidden, firewalled) = {
        let conditions = world.conditions();
        (
            conditions.expirable_secrets,
            conditions.forbidden_keys,
            conditions.firewalled,
        )
    };
    // Clients outside get the address of the firewall, which the emulator plays.
    let from_outside = |mut shown: Value| {
        if firewalled {
            let port = world.endpoint.rsplit(':').next().unwrap_or_default();
            shown["properties"]["endpoint"] = json!(format!("core.localhost:{port}"));
        }
        shown
    };
    let mut workspaces = world.workspaces();
    let workspace = workspaces.get_mut(&scope.key()).ok_or_else(nowhere)?;
    match (call.method.as_str(), words) {
        ("GET", []) => good(
            json!({"value": list(workspace, call, unseen).into_iter().map(from_outside).collect::<Vec<_>>()}),
        ),
        ("GET", [name]) => good(from_outside(show(
            scope,
            name,
            known(workspace, name, unseen)?,
        ))),
        ("PUT", [name]) => put(workspace, call, name),
        ("DELETE", [name]) => Ok(Answer::empty(
            if workspace.datastores.remove(*name).is_some() {
                200
            } else {
                204
            },
        )),
        ("POST", [name, "listSecrets"]) => {
            let mut properties = known(workspace, name, unseen)?.properties.clone();
            drop(workspaces);
            // A wrong key: the storage refuses it in the same way as one that is not allowed.
            if forbidden && properties["credentials"]["secrets"]["key"].is_string() {
                properties["credentials"]["secrets"]["key"] = json!("bm90IGFsbG93ZWQgaGVyZQ==");
            }
            good(secrets(world, call, &properties, expirable))
        }
        (_, [] | [_] | [_, "listSecrets"]) => Err(not_allowed()),
        _ => Err(nowhere()),
    }
}

fn known<'a>(workspace: &'a Workspace, name: &str, unseen: Duration) -> Result<&'a Entry, Answer> {
    let missing = || not_found(&format!("Could not find datastore: {name}"));
    workspace
        .datastores
        .get(name)
        .filter(|entry| entry.is_seen(unseen))
        .ok_or_else(missing)
}

fn list(workspace: &Workspace, call: &Call, unseen: Duration) -> Vec<Value> {
    let names: Option<Vec<&str>> = call.query("names").map(|names| names.split(',').collect());
    let fits = |name: &str, entry: &Entry| {
        let default = entry.properties["isDefault"] == true;
        let named = names.as_ref().is_none_or(|names| names.contains(&name));
        named
            && (!call.is_true("isDefault") || default)
            && call
                .query("searchText")
                .is_none_or(|text| name.contains(text))
            && entry.is_seen(unseen)
    };
    let found = workspace
        .datastores
        .iter()
        .filter(|(name, entry)| fits(name, entry))
        .map(|(name, entry)| show(&workspace.scope, name, entry));
    let most = call.number("count").unwrap_or(usize::MAX);
    found.take(most).collect()
}

fn put(workspace: &mut Workspace, call: &Call, name: &str) -> Outcome {
    let mut properties = call.properties()?;
    for needed in ["datastoreType", "credentials"] {
        if properties[needed].is_null() {
            return Err(invalid(&format!("The {needed} field is required.")));
        }
    }
    if properties["credentials"]["credentialsType"].is_null() {
        return Err(invalid("The CredentialsType field is required."));
    }
    if properties["isDefault"].is_null() {
        properties["isDefault"] = json!(false);
    }
    let (status, entry) = match workspace.datastores.remove(name) {
        Some(known) => (
            200,
            Entry {
                properties,
                changed: clock::now(),
                ..known
            },
        ),
        None => (201, Entry::new(properties)),
    };
    let shown = show(&workspace.scope, name, &entry);
    workspace.datastores.insert(name.to_owned(), entry);
    Ok(Answer::json(status, shown))
}

/// The datastore without its secrets.
fn show(scope: &Scope, name: &str, entry: &Entry) -> Value {
    let mut properties = entry.properties.clone();
    if let Some(secrets) = properties["credentials"]["secrets"].as_object_mut() {
        secrets.retain(|name, _| name == "secretsType");
    }
    entry.resource(
        &format!("{}/datastores/{name}", scope.id()),
        "datastores",
        &properties,
    )
}

fn secrets(world: &World, call: &Call, properties: &Value, expirable: bool) -> Value {
    let asked = call.json_or_empty();
    let known = &properties["credentials"]["secrets"];
    if !expirable || asked["expirableSecret"] != true || known["secretsType"] != "AccountKey" {
        return known.clone();
    }
    let hours = asked["expireAfterHours"].as_i64().unwrap_or(1);
    let container = properties["containerName"].as_str().unwrap_or_default();
    json!({"secretsType": "Sas", "sasToken": world.blobs.account.container_sas(container, "rcwdl", hours * 3600)})
}
