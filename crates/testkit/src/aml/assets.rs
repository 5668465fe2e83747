//! Assets with versions: codes, environments, data.

use super::answer::{Answer, Outcome, good, invalid, not_found, user_error};
use super::call::Call;
use super::ids::Scope;
use super::routes::{not_allowed, nowhere};
use super::workspace::Entry;
use super::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use towline_host::clock;

/// The stored assets by kind, name and version, in the order of putting.
#[derive(Debug, Default)]
pub(super) struct Assets(BTreeMap<(String, String, String), Entry>);

/// Fields that cannot change once put, and their names in the service's refusal.
const IMMUTABLE_FIELDS: [(&str, &str, &str, &str); 3] = [
    ("codes", "codeUri", "code version", "code uri"),
    ("environments", "image", "environment", "image"),
    ("data", "dataUri", "data version", "data uri"),
];

/// Fields that must be present.
const REQUIRED_FIELDS: [(&str, &str); 2] = [("data", "dataUri"), ("data", "dataType")];

impl Assets {
    fn get(&self, kind: &str, name: &str, version: &str, unseen: Duration) -> Option<&Entry> {
        self.0
            .get(&(kind.to_owned(), name.to_owned(), version.to_owned()))
            .filter(|entry| entry.is_seen(unseen))
    }
    /// Whether it exists, visible to reads or not.
    pub(super) fn has(&self, kind: &str, name: &str, version: &str) -> bool {
        self.0
            .contains_key(&(kind.to_owned(), name.to_owned(), version.to_owned()))
    }
    /// Its properties, visible to reads or not.
    pub(super) fn properties(&self, kind: &str, name: &str, version: &str) -> Option<&Value> {
        self.0
            .get(&(kind.to_owned(), name.to_owned(), version.to_owned()))
            .map(|entry| &entry.properties)
    }
    /// All versions of a name, the newest first.
    fn versions(
        &self,
        kind: &str,
        name: Option<&str>,
        unseen: Duration,
    ) -> Vec<(&String, &String, &Entry)> {
        let fits = |(found, its, _): &&(String, String, String)| {
            found == kind && name.is_none_or(|name| name == its)
        };
        let mut found: Vec<_> = self
            .0
            .iter()
            .filter(|(key, entry)| fits(key) && entry.is_seen(unseen))
            .map(|((_, name, version), entry)| (name, version, entry))
            .collect();
        found.sort_by_key(|(_, _, entry)| std::cmp::Reverse(entry.made));
        found
    }
}

pub(super) fn route(world: &World, call: &Call, scope: &Scope, words: &[&str]) -> Outcome {
    match (call.method.as_str(), words) {
        ("GET", [kind]) => containers(world, scope, kind),
        ("GET", [kind, name]) => container(world, scope, kind, name),
        ("GET", [kind, name, "versions"]) => list(world, call, scope, kind, name),
        ("GET", [kind, name, "versions", version]) => get(world, scope, kind, name, version),
        ("PUT", [kind, name, "versions", version]) => put(world, call, scope, kind, name, version),
        ("DELETE", [kind, name, "versions", version]) => {
            let key = (
                (*kind).to_owned(),
                (*name).to_owned(),
                (*version).to_owned(),
            );
            let gone = world
                .workspaces()
                .get_mut(&scope.key())
                .and_then(|workspace| workspace.assets.0.remove(&key));
            Ok(Answer::empty(if gone.is_some() { 200 } else { 204 }))
        }
        (_, [_, _, "versions", _] | [_, _, "versions"] | [_, _] | [_]) => Err(not_allowed()),
        _ => Err(nowhere()),
    }
}

fn get(world: &World, scope: &Scope, kind: &str, name: &str, version: &str) -> Outcome {
    let unseen = world.conditions().unseen;
    let workspaces = world.workspaces();
    let entry = workspaces
        .get(&scope.key())
        .and_then(|workspace| workspace.assets.get(kind, name, version, unseen));
    good(show(
        scope,
        kind,
        name,
        version,
        entry.ok_or_else(|| missing(kind, name, version))?,
    ))
}

fn put(
    world: &World,
    call: &Call,
    scope: &Scope,
    kind: &str,
    name: &str,
    version: &str,
) -> Outcome {
    let properties = call.properties()?;
    if let Some((_, needed)) = REQUIRED_FIELDS
        .iter()
        .find(|(of, needed)| *of == kind && properties[*needed].as_str().is_none_or(str::is_empty))
    {
        return Err(invalid(&format!("The {needed} field is required.")));
    }
    let mut workspaces = world.workspaces();
    let workspace = workspaces.get_mut(&scope.key()).ok_or_else(nowhere)?;
    let key = (kind.to_owned(), name.to_owned(), version.to_owned());
    let status = if let Some(known) = workspace.assets.0.get_mut(&key) {
        check_fixed(kind, &known.properties, &properties)?;
        known.properties = properties;
        known.changed = clock::now();
        200
    } else {
        workspace
            .assets
            .0
            .insert(key.clone(), Entry::new(properties));
        201
    };
    let entry = &workspace.assets.0[&key];
    Ok(Answer::json(
        status,
        show(scope, kind, name, version, entry),
    ))
}

/// Refuses a change of immutable fields.
fn check_fixed(kind: &str, known: &Value, properties: &Value) -> Result<(), Answer> {
    let Some((_, field, what, called)) = IMMUTABLE_FIELDS.iter().find(|(of, ..)| *of == kind)
    else {
        return Ok(());
    };
    if known[*field] == properties[*field] {
        return Ok(());
    }
    let message = format!(
        "A {what} with this name and version already exists. If you are trying to create a new \
            {what}, use a different name or version. If you are trying \
         to update an existing {what}, the existing asset's {called} cannot be changed. Only tags, \
             description, and isArchived can be updated."
    );
    Err(user_error(
        400,
        &message,
        &json!({"code": "Immutable", "innerError": {"code": "VersionedAssetImmutable", "innerError": null}}),
    ))
}

/// Versions of a name or, by the hash of their content, of any name: the same code is never stored
/// twice.
fn list(world: &World, call: &Call, scope: &Scope, kind: &str, name: &str) -> Outcome {
    let unseen = world.conditions().unseen;
    let workspaces = world.workspaces();
    let workspace = workspaces.get(&scope.key()).ok_or_else(nowhere)?;
    let hash = call.query("hash");
    let fits = |entry: &Entry| {
        let properties = &entry.properties["properties"];
        let archived = entry.properties["isArchived"] == true;
        hash.map_or(
            !archived || call.query("listViewType") == Some("All"),
            |hash| properties["hash_sha256"] == *hash,
        )
    };
    let found = workspace
        .assets
        .versions(kind, hash.is_none().then_some(name), unseen)
        .into_iter()
        .filter(|(_, _, entry)| fits(entry));
    let most = call.number("$top").unwrap_or(usize::MAX);
    let value: Vec<Value> = found
        .take(most)
        .map(|(name, version, entry)| show(scope, kind, name, version, entry))
        .collect();
    good(json!({"value": value}))
}

fn containers(world: &World, scope: &Scope, kind: &str) -> Outcome {
    let unseen = world.conditions().unseen;
    let workspaces = world.workspaces();
    let workspace = workspaces.get(&scope.key()).ok_or_else(nowhere)?;
    let mut names: Vec<&String> = workspace
        .assets
        .versions(kind, None, unseen)
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
    names.sort();
    names.dedup();
    let value: Vec<Value> = names
        .into_iter()
        .filter_map(|name| show_container(&workspace.assets, scope, kind, name, unseen))
        .collect();
    good(json!({"value": value}))
}

fn container(world: &World, scope: &Scope, kind: &str, name: &str) -> Outcome {
    let unseen = world.conditions().unseen;
    let workspaces = world.workspaces();
    let workspace = workspaces.get(&scope.key()).ok_or_else(nowhere)?;
    good(
        show_container(&workspace.assets, scope, kind, name, unseen)
            .ok_or_else(|| missing(kind, name, "latest"))?,
    )
}

fn show_container(
    assets: &Assets,
    scope: &Scope,
    kind: &str,
    name: &str,
    unseen: Duration,
) -> Option<Value> {
    let versions = assets.versions(kind, Some(name), unseen);
    let (_, latest, newest) = versions.first()?;
    let next = versions
        .iter()
        .filter_map(|(_, version, _)| version.parse::<u64>().ok())
        .max()
        .unwrap_or(0)
        + 1;
    let mut properties = json!({"latestVersion": latest, "nextVersion": next.to_string(), "isArchived": false, "tags": {}, "properties": {}});
    if kind == "data" {
        properties["dataType"] = newest.properties["dataType"].clone();
    }
    Some(newest.resource(&format!("{}/{kind}/{name}", scope.id()), kind, &properties))
}

fn show(scope: &Scope, kind: &str, name: &str, version: &str, entry: &Entry) -> Value {
    let mut properties = entry.properties.clone();
    if kind == "environments" {
        properties["environmentType"] = json!("UserCreated");
        if properties["osType"].is_null() {
            properties["osType"] = json!("Linux");
        }
    }
    for (name, empty) in [
        ("tags", json!({})),
        ("properties", json!({})),
        ("isArchived", json!(false)),
        ("isAnonymous", json!(false)),
    ] {
        if properties[name].is_null() {
            properties[name] = empty;
        }
    }
    // The service takes numbers as properties, and returns them as text.
    for value in properties["properties"]
        .as_object_mut()
        .into_iter()
        .flat_map(|entries| entries.values_mut())
    {
        if value.is_number() {
            *value = json!(value.to_string());
        }
    }
    entry.resource(
        &format!("{}/{kind}/{name}/versions/{version}", scope.id()),
        &format!("{kind}/versions"),
        &properties,
    )
}

fn missing(kind: &str, name: &str, version: &str) -> Answer {
    let what = match kind {
        "codes" => "code",
        "environments" => "environment",
        other => other,
    };
    not_found(&format!("Not found {what} {name}:{version}."))
}
