//! A workspace and its content.

use super::answer::{Answer, Outcome, good, refusal};
use super::assets::Assets;
use super::blobs::Blobs;
use super::call::Call;
use super::document::Job;
use super::ids::{LOCATION, PROVIDER, Scope, TENANT, uuid_of};
use super::world::World;
use super::{computes, datastores};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use towline_core::time::Moment;
use towline_host::clock;

/// A stored resource with its time of creation.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub properties: Value,
    pub made: Moment,
    pub changed: Moment,
}

#[derive(Debug)]
pub(super) struct Workspace {
    pub scope: Scope,
    pub id: String,
    made: Moment,
    /// The body of the PUT, unchanged.
    brought: Value,
    pub datastores: BTreeMap<String, Entry>,
    pub assets: Assets,
    pub computes: BTreeMap<String, Entry>,
    pub jobs: BTreeMap<String, Job>,
}

impl Entry {
    pub(super) fn new(properties: Value) -> Self {
        let now = clock::now();
        Self {
            properties,
            made: now,
            changed: now,
        }
    }
    pub(super) fn is_seen(&self, unseen: Duration) -> bool {
        is_seen(self.made, unseen)
    }
    /// As the resource manager shows it.
    pub(super) fn resource(&self, id: &str, kind: &str, properties: &Value) -> Value {
        let name = id.rsplit('/').next().unwrap_or_default();
        json!({
            "id": id, "name": name, "type": format!("{PROVIDER}/workspaces/{kind}"), "properties": properties,
            "systemData": system_data(self.made, self.changed),
        })
    }
}

/// Whether something that was made then is visible to reads.
pub(super) fn is_seen(made: Moment, unseen: Duration) -> bool {
    made.plus_millis(u64::try_from(unseen.as_millis()).unwrap_or(u64::MAX)) <= clock::now()
}

pub(super) fn system_data(made: Moment, changed: Moment) -> Value {
    json!({
        "createdAt": made.to_string(), "createdBy": "Towline Tester", "createdByType": "User",
        "lastModifiedAt": changed.to_string(), "lastModifiedBy": "Towline \
            Tester", "lastModifiedByType": "User",
    })
}

impl Workspace {
    pub(super) fn new(scope: Scope, blobs: &Blobs) -> Self {
        let id = uuid_of(&scope.key());
        let (datastores, computes) = (datastores::first(&id, blobs), computes::first(&scope));
        Self {
            scope,
            id,
            made: clock::now(),
            brought: json!({}),
            datastores,
            assets: Assets::default(),
            computes,
            jobs: BTreeMap::new(),
        }
    }
    /// The containers behind its own datastores.
    pub(super) fn make_containers(&self, blobs: &Blobs) {
        for store in self.datastores.values() {
            blobs
                .make_container(
                    store.properties["containerName"]
                        .as_str()
                        .unwrap_or_default(),
                )
                .unwrap();
        }
    }

    fn show(&self, world: &World) -> Value {
        let (group, name) = (self.scope.group_id(), &self.scope.workspace);
        let under = |kind: &str, name: &str| format!("{group}/providers/{kind}/{name}");
        let identity = under("Microsoft.ManagedIdentity/userAssignedIdentities", "tow");
        let mut properties = json!({
            "workspaceId": self.id, "friendlyName": name, "description": "", "tenantId": TENANT, "hbiWorkspace": false,
            "storageAccount": under("Microsoft.Storage/storageAccounts", &world.blobs.account.name),
            "keyVault": under("Microsoft.KeyVault/vaults", "towvault"),
            "applicationInsights": under("Microsoft.insights/components", "towinsights"),
            "discoveryUrl": format!("{}/discovery", world.endpoint),
            "mlFlowTrackingUri": format!("azureml://{LOCATION}.api.azureml.ms/mlflow/v1.0{}", self.scope.id()),
            "provisioningState": "Succeeded", "publicNetworkAccess": "Enabled", "v1LegacyMode": false,
        });
        for (name, value) in self.brought["properties"].as_object().into_iter().flatten() {
            if properties.get(name).is_none() || name == "description" || name == "friendlyName" {
                properties[name] = value.clone();
            }
        }
        json!({
            "id": self.scope.id(), "name": name, "type": format!("{PROVIDER}/workspaces"), "location": location(&self.brought), "kind": "Default",
            "tags": self.brought.get("tags").cloned().unwrap_or_else(|| json!({})), "sku": {"name": "Basic", "tier": "Basic"},
            "identity": {
                "type": "SystemAssigned,UserAssigned", "principalId": uuid_of(&self.id), "tenantId": TENANT,
                "userAssignedIdentities": {identity: {"principalId": uuid_of(&uuid_of("client")), "clientId": uuid_of("client")}},
            },
            "properties": properties,
            "systemData": system_data(self.made, self.made),
        })
    }
}

fn location(brought: &Value) -> &str {
    brought["location"].as_str().unwrap_or(LOCATION)
}

pub(super) fn get(world: &World, scope: &Scope) -> Value {
    world
        .workspaces()
        .get(&scope.key())
        .map(|workspace| workspace.show(world))
        .unwrap_or_default()
}

/// Makes it at once; the real service takes minutes.
pub(super) fn put(world: &World, call: &Call, scope: &Scope) -> Outcome {
    let brought = call.json()?;
    world.add_workspace(scope);
    if let Some(workspace) = world.workspaces().get_mut(&scope.key()) {
        workspace.brought = brought;
    }
    good(get(world, scope))
}

pub(super) fn list(world: &World, subscription: &str, group: Option<&str>) -> Value {
    let is = |found: &str, wanted: &str| found.eq_ignore_ascii_case(wanted);
    let fits = |scope: &Scope| {
        is(&scope.subscription, subscription) && group.is_none_or(|group| is(&scope.group, group))
    };
    let found: Vec<Value> = world
        .workspaces()
        .values()
        .filter(|workspace| fits(&workspace.scope))
        .map(|workspace| workspace.show(world))
        .collect();
    json!({"value": found})
}

pub(super) fn missing(scope: &Scope) -> Answer {
    let message = format!(
        "The Resource '{PROVIDER}/workspaces/{}' under resource group '{}' was not found. For more \
            details please go to https://aka.ms/ARMResourceNotFoundFix",
        scope.workspace, scope.group
    );
    refusal(404, "ResourceNotFound", &message)
}

/// A user-assigned identity of any group: every name exists.
pub(super) fn identity(path: &str, name: &str) -> Value {
    let ids = json!({"clientId": uuid_of(name), "principalId": uuid_of(&uuid_of(name)), "tenantId": TENANT});
    json!({"id": format!("/{path}"), "name": name, "type": "Microsoft.ManagedIdentity/userAssignedIdentities", "properties": ids})
}

/// The identities of a subscription: one in another group than the workspace's, and two of one
/// name.
pub(super) fn identities(subscription: &str) -> Value {
    let at = |group: &str, name: &str| {
        identity(
            &format!(
                "subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
            ),
            name,
        )
    };
    json!({"value": [at("elsewhere", "lender"), at("here", "twin"), at("there", "twin")]})
}
