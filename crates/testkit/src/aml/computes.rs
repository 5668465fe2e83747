//! Computes: clusters of nodes, and those of Kubernetes.

use super::answer::{Answer, Outcome, good, invalid, refusal};
use super::call::Call;
use super::ids::{LOCATION, PROVIDER, Scope};
use super::routes::{not_allowed, nowhere};
use super::workspace::{Entry, Workspace};
use super::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use towline_host::clock;

pub(super) fn first(scope: &Scope) -> BTreeMap<String, Entry> {
    let nodes = json!({"computeType": "AmlCompute", "properties": {
        "vmSize": "STANDARD_ND96AMSR_A100_V4", "vmPriority": "Dedicated", "osType": "Linux", "remoteLoginPortPublicAccess": "Disabled",
        "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 8, "nodeIdleTimeBeforeScaleDown": "PT2M"}, "enableNodePublicIp": false,
    }});
    let pods = json!({
        "computeType": "Kubernetes",
        "resourceId": format!("{}/providers/Microsoft.Kubernetes/connectedClusters/k8s", scope.group_id()),
        "properties": {"namespace": "default", "defaultInstanceType": "small", "instanceTypes": {"small": {"resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}}},
    });
    BTreeMap::from(
        [("cpu", nodes), ("k8s", pods)]
            .map(|(name, properties)| (name.to_owned(), Entry::new(properties))),
    )
}

/// Machine types of computes.
pub(super) fn sizes() -> Value {
    let size = |name: &str, family: &str, cpus: u32, gpus: u32, memory: u32| {
        json!({
            "name": name, "family": family, "vCPUs": cpus, "gpus": gpus, "osVhdSizeMB": 1_047_552, "maxResourceVolumeMB": 2_970_000, "memoryGB": memory,
            "lowPriorityCapable": true, "premiumIO": true, "supportedComputeTypes": ["AmlCompute", "ComputeInstance"],
        })
    };
    json!({"value": [
        size("Standard_ND96amsr_A100_v4", "standardNDAMSA100v4Family", 96, 8, 1900),
        size("Standard_NC24rs_v3", "standardNCSv3Family", 24, 4, 448),
        size("Standard_D3_v2", "standardDv2Family", 4, 0, 14),
    ]})
}

pub(super) fn route(world: &World, call: &Call, scope: &Scope, words: &[&str]) -> Outcome {
    let mut workspaces = world.workspaces();
    let workspace = workspaces.get_mut(&scope.key()).ok_or_else(nowhere)?;
    match (call.method.as_str(), words) {
        ("GET", []) => {
            let found: Vec<Value> = workspace
                .computes
                .iter()
                .map(|(name, entry)| show(workspace, name, entry))
                .collect();
            good(json!({"value": found}))
        }
        ("GET", [name]) => good(show(workspace, name, known(workspace, name)?)),
        ("PUT" | "PATCH", [name]) => put(workspace, call, name),
        ("DELETE", [_]) if call.query("underlyingResourceAction").is_none() => Err(invalid(
            "The underlyingResourceAction parameter is required.",
        )),
        ("DELETE", [name]) => Ok(Answer::empty(
            if workspace.computes.remove(*name).is_some() {
                200
            } else {
                204
            },
        )),
        ("POST", [name, "listNodes"]) => {
            known(workspace, name)?;
            good(json!({"nodes": nodes(workspace, name)}))
        }
        (_, [] | [_] | [_, "listNodes"]) => Err(not_allowed()),
        _ => Err(nowhere()),
    }
}

fn known<'a>(workspace: &'a Workspace, name: &str) -> Result<&'a Entry, Answer> {
    let missing = || {
        refusal(
            404,
            "ComputeNotFound",
            &format!("Compute with name {name} could not be found in the workspace."),
        )
    };
    workspace.computes.get(name).ok_or_else(missing)
}

fn put(workspace: &mut Workspace, call: &Call, name: &str) -> Outcome {
    let properties = call.properties()?;
    if call.method == "PUT" && properties["computeType"].as_str().is_none_or(str::is_empty) {
        return Err(invalid("The ComputeType field is required."));
    }
    let (status, entry) = match workspace.computes.remove(name) {
        Some(mut known) => {
            for (field, value) in properties.as_object().into_iter().flatten() {
                known.properties[field] = value.clone();
            }
            (
                200,
                Entry {
                    changed: clock::now(),
                    ..known
                },
            )
        }
        None => (201, Entry::new(properties)),
    };
    let shown = show(workspace, name, &entry);
    workspace.computes.insert(name.to_owned(), entry);
    Ok(Answer::json(status, shown))
}

/// One entry for each node of a job that runs here.
fn nodes(workspace: &Workspace, name: &str) -> Vec<Value> {
    let end = format!("/computes/{name}");
    let here = |id: &str| id == name || id.ends_with(&end);
    let running = workspace
        .jobs
        .iter()
        .filter(|(_, job)| job.status == "Running" && here(job.text("computeId")));
    let node = |job: &str, number: usize| {
        json!({
            "nodeId": format!("tvmps_{name}_{number}_d"), "privateIpAddress": format!("10.0.0.{}", number + 4), "publicIpAddress": null,
            "port": 50000 + number, "nodeState": "running", "runId": job,
        })
    };
    let of_jobs = running.flat_map(|(name, job)| (0..job.node_count()).map(move |_| name.as_str()));
    of_jobs
        .enumerate()
        .map(|(number, job)| node(job, number))
        .collect()
}

fn show(workspace: &Workspace, name: &str, entry: &Entry) -> Value {
    let mut properties = entry.properties.clone();
    properties["provisioningState"] = json!("Succeeded");
    properties["createdOn"] = json!(entry.made.to_string());
    properties["modifiedOn"] = json!(entry.changed.to_string());
    properties["computeLocation"] = json!(LOCATION);
    properties["isAttachedCompute"] = json!(properties["computeType"] == "Kubernetes");
    if properties["computeType"] == "AmlCompute" {
        let many = nodes(workspace, name).len();
        properties["properties"]["currentNodeCount"] = json!(many);
        properties["properties"]["targetNodeCount"] = json!(many);
        properties["properties"]["allocationState"] = json!("Steady");
        let none = ["preparing", "idle", "unusable", "leaving", "preempted"]
            .map(|state| (format!("{state}NodeCount"), json!(0)));
        let mut counts: serde_json::Map<String, Value> = none.into_iter().collect();
        counts.insert("runningNodeCount".to_owned(), json!(many));
        properties["properties"]["nodeStateCounts"] = Value::Object(counts);
    }
    let id = format!("{}/computes/{name}", workspace.scope.id());
    json!({"id": id, "name": name, "type": format!("{PROVIDER}/workspaces/computes"), "location": LOCATION, "tags": {}, "properties": properties})
}
