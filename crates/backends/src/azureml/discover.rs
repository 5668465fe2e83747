//! Lists what the user may use: workspaces and their computes, virtual clusters and their quotas,
//! images, identities. A part that the service refuses is left out, and a note says so.

use super::client::{found, good, list, url, versioned};
use super::config::Scope;
use super::probe::{CLUSTERS_API, all_of, quotas};
use super::site::QuotaFacts;
use super::workspaces::{subscriptions, workspaces};
use serde_json::{Value, json};
use towline_core::cloud::{Call, Cloud};
use towline_core::{Error, ErrorKind, Result};

/// How many pages of virtual clusters are read at most.
const MAX_PAGES: usize = 100;
const GRAPH_API: &str = "2021-03-01";
pub(super) const IMAGES_API: &str = "2020-12-01-preview";
pub(super) const IDENTITIES_API: &str = "2023-01-31";

#[derive(Debug, Clone, PartialEq)]
pub struct ComputeFacts {
    pub name: String,
    /// `AmlCompute`, `Kubernetes`, …
    pub kind: String,
    pub vm_size: Option<String>,
    pub most_nodes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceFacts {
    pub scope: Scope,
    pub computes: Vec<ComputeFacts>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VirtualClusterFacts {
    pub id: String,
    pub name: String,
    pub location: String,
    pub quotas: Vec<QuotaFacts>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Discovered {
    pub workspaces: Vec<WorkspaceFacts>,
    pub virtual_clusters: Vec<VirtualClusterFacts>,
    /// Curated images of virtual clusters.
    pub images: Vec<String>,
    /// Ids of user-assigned identities.
    pub identities: Vec<String>,
    /// Notes about calls that failed.
    pub notes: Vec<String>,
}

pub fn discover(cloud: &dyn Cloud) -> Result<Discovered> {
    let (scopes, notes) = workspaces(cloud)?;
    let mut discovered = Discovered {
        notes,
        ..Discovered::default()
    };
    let calls: Vec<Call> = scopes
        .iter()
        .map(|scope| Call::get(url(cloud, &format!("{}/computes", scope.id()))))
        .collect();
    for (scope, reply) in scopes.iter().zip(cloud.call_all(&calls)) {
        let what = format!("computes of {}", scope.workspace);
        let computes = match reply.and_then(|reply| all_of(cloud, &what, good(&what, &reply)?)) {
            Ok(answer) => computes(&answer),
            Err(error) => {
                discovered.notes.push(error.to_string());
                Vec::new()
            }
        };
        discovered.workspaces.push(WorkspaceFacts {
            scope: scope.clone(),
            computes,
        });
    }
    // A virtual cluster may be in a subscription without a workspace.
    let all = subscriptions(cloud)?;
    match virtual_clusters(cloud, &all.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(found) => discovered.virtual_clusters = found,
        Err(error) => discovered.notes.push(error.to_string()),
    }
    for subscription in &all {
        let base = format!("/subscriptions/{subscription}/providers");
        let names = |all: &[Value], key: &str| -> Vec<String> {
            all.iter()
                .filter_map(|entry| entry[key].as_str())
                .map(ToOwned::to_owned)
                .collect()
        };
        let mut add =
            |into: &mut Vec<String>, what: &str, place: &str, version: &str, key: &str| {
                match list(
                    cloud,
                    what,
                    Call::get(versioned(cloud, &format!("{base}/{place}"), version)),
                ) {
                    Ok(all) => into.extend(names(&all, key)),
                    // A subscription may have no such resource at all.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => discovered.notes.push(error.to_string()),
                }
            };
        add(
            &mut discovered.images,
            "images",
            "Microsoft.Singularity/images",
            IMAGES_API,
            "name",
        );
        add(
            &mut discovered.identities,
            "identities",
            "Microsoft.ManagedIdentity/userAssignedIdentities",
            IDENTITIES_API,
            "id",
        );
    }
    discovered.identities.extend(of_workspaces(cloud, &scopes));
    discovered.identities.sort_unstable();
    discovered.identities.dedup();
    Ok(discovered)
}

/// The identities of workspaces: a job can run as one of them.
fn of_workspaces(cloud: &dyn Cloud, scopes: &[Scope]) -> Vec<String> {
    let calls: Vec<Call> = scopes
        .iter()
        .map(|scope| Call::get(url(cloud, &scope.id())))
        .collect();
    let known = cloud
        .call_all(&calls)
        .into_iter()
        .filter_map(|reply| found("a workspace", &reply.ok()?).ok().flatten());
    let of = |workspace: &Value| {
        workspace["identity"]["userAssignedIdentities"]
            .as_object()
            .map(|all| all.keys().cloned().collect::<Vec<_>>())
    };
    known
        .filter_map(|workspace| of(&workspace))
        .flatten()
        .collect()
}

fn computes(answer: &Value) -> Vec<ComputeFacts> {
    let compute = |compute: &Value| {
        let own = &compute["properties"]["properties"];
        Some(ComputeFacts {
            name: compute["name"].as_str()?.to_owned(),
            kind: compute["properties"]["computeType"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            vm_size: own["vmSize"].as_str().map(ToOwned::to_owned),
            most_nodes: own["scaleSettings"]["maxNodeCount"].as_u64(),
        })
    };
    answer["value"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(compute)
        .collect()
}

/// Ids of the virtual clusters that the user may see, each with its entry in the resource graph.
pub(super) fn listed_clusters(
    cloud: &dyn Cloud,
    subscriptions: &[&str],
) -> Result<Vec<(String, Value)>> {
    let at = versioned(
        cloud,
        "/providers/Microsoft.ResourceGraph/resources",
        GRAPH_API,
    );
    let mut ids: Vec<(String, Value)> = Vec::new();
    let mut next: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let mut question = json!({
            "subscriptions": subscriptions,
            "query": "resources | where type == \
                'microsoft.machinelearningservices/virtualclusters' | order by name asc",
            "options": {"resultFormat": "objectArray"},
        });
        if let Some(token) = &next {
            question["options"]["$skipToken"] = json!(token);
        }
        let answer = good(
            "virtual clusters",
            &cloud.call(&Call::post(at.clone(), question).repeatable())?,
        )?;
        ids.extend(
            answer["data"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|entry| Some((entry["id"].as_str()?.to_owned(), entry.clone()))),
        );
        next = answer["$skipToken"].as_str().map(ToOwned::to_owned);
        if next.is_none() {
            break;
        }
    }
    Ok(ids)
}

fn virtual_clusters(cloud: &dyn Cloud, subscriptions: &[&str]) -> Result<Vec<VirtualClusterFacts>> {
    let ids = listed_clusters(cloud, subscriptions)?;
    // The resource graph may be hours old, so the usage is asked from the cluster itself.
    let calls: Vec<Call> = ids
        .iter()
        .map(|(id, _)| Call::get(versioned(cloud, id, CLUSTERS_API)))
        .collect();
    let fresh = cloud.call_all(&calls).into_iter().map(|reply| {
        reply
            .ok()
            .and_then(|reply| found("a virtual cluster", &reply).ok().flatten())
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(ids
        .into_iter()
        .zip(fresh)
        .map(|((id, known), fresh)| {
            let entry = fresh.unwrap_or(known);
            VirtualClusterFacts {
                id,
                name: text(&entry["name"]),
                location: text(&entry["location"]),
                quotas: quotas(&entry),
            }
        })
        .collect())
}

/// Creates a workspace beside an existing one, with the same storage, vault and telemetry under
/// another name. Repeating the call gives the same workspace.
pub fn create_workspace(
    cloud: &dyn Cloud,
    like: &Scope,
    name: &str,
    location: Option<&str>,
) -> Result<Scope> {
    let what = format!("workspace `{}`", like.workspace);
    let model = good(&what, &cloud.call(&Call::get(url(cloud, &like.id())))?)?;
    let scope = Scope {
        workspace: name.to_owned(),
        ..like.clone()
    };
    if cloud.call(&Call::get(url(cloud, &scope.id())))?.is_good() {
        return Err(
            Error::conflict(format!("workspace `{name}` is there already"))
                .hint("name it as `workspace` of a cluster"),
        );
    }
    let mut properties = json!({"friendlyName": name, "description": "made by tow"});
    for key in [
        "storageAccount",
        "keyVault",
        "applicationInsights",
        "containerRegistry",
    ] {
        if let Some(id) = model["properties"][key].as_str() {
            properties[key] = json!(id);
        }
    }
    let body = json!({
        "location": location.or_else(|| model["location"].as_str()), "identity": {"type": "SystemAssigned"}, "properties": properties,
    });
    good(
        &format!("workspace `{name}`"),
        &cloud.call(&Call::put(url(cloud, &scope.id()), body))?,
    )?;
    Ok(scope)
}
