//! A run, as run history shows it.

use super::document::{ARTIFACTS_CONTAINER, Job};
use super::ids::uuid_of;
use super::world::World;
use serde_json::{Map, Value, json};

/// How long addresses of logs are valid.
const LOG_ADDRESS_SECONDS: i64 = 8 * 3600;

/// Folders whose files are logs.
const LOG_FOLDERS: [&str; 4] = ["user_logs/", "system_logs/", "azureml-logs/", "logs/"];

pub(super) fn run(job: &Job) -> Value {
    let time = |moment: Option<towline_core::time::Moment>| moment.map(|moment| moment.to_string());
    json!({
        "runId": job.name, "rootRunId": job.name, "runUuid": uuid_of(&job.name), "rootRunUuid": uuid_of(&job.name), "parentRunId": null,
        "experimentId": uuid_of(job.experiment()), "displayName": job.display_name(), "name": job.display_name(),
        "description": job.asked["description"], "status": job.shown_status(), "runNumber": job.number, "runType": "azureml.scriptrun",
        "dataContainerId": format!("dcid.{}", job.name), "hidden": job.asked["isArchived"] == true,
        "createdUtc": job.made.to_string(), "startTimeUtc": time(job.started), "endTimeUtc": time(job.ended), "lastModifiedUtc": job.changed.to_string(),
        "tags": job.asked.get("tags").filter(|tags| tags.is_object()).cloned().unwrap_or_else(|| json!({})),
        "properties": job.shown_properties(), "target": target(job), "error": job.error, "warnings": [], "inputs": {}, "outputs": {},
        "createdBy": {"userObjectId": uuid_of(&uuid_of("client")), "userName": "Towline Tester"},
    })
}

pub(super) fn details(job: &Job, logs: &Map<String, Value>) -> Value {
    let time = |moment: Option<towline_core::time::Moment>| moment.map(|moment| moment.to_string());
    json!({
        "runId": job.name, "runUuid": uuid_of(&job.name), "rootRunId": job.name, "target": target(job), "status": job.shown_status(),
        "createdTimeUtc": job.made.to_string(), "startTimeUtc": time(job.started), "endTimeUtc": time(job.ended),
        "error": job.error, "warnings": [], "tags": job.asked.get("tags").filter(|tags| tags.is_object()).cloned().unwrap_or_else(|| json!({})),
        "properties": job.shown_properties(), "parameters": {}, "services": {}, "inputDatasets": [], "outputDatasets": [],
        "runDefinition": {"command": job.asked["command"], "environmentVariables": job.asked["environmentVariables"]}, "logFiles": logs,
        "runNumber": job.number,
    })
}

/// Every present log, with a signed address.
pub(super) fn logs(world: &World, job: &str) -> Result<Map<String, Value>, String> {
    let prefix = Job::artifacts(job);
    let (expired, halved) = {
        let conditions = world.conditions();
        (conditions.expired_logs, conditions.halved_logs)
    };
    let found = world.blobs.list(ARTIFACTS_CONTAINER, &prefix)?;
    let names = found
        .iter()
        .filter_map(|(name, _)| name.strip_prefix(&prefix))
        .filter(|name| LOG_FOLDERS.iter().any(|folder| name.starts_with(folder)));
    let address = |name: &str| {
        let blob = format!("{prefix}{name}");
        let signature = world.blobs.account.blob_sas(
            ARTIFACTS_CONTAINER,
            &blob,
            "r",
            if expired { -60 } else { LOG_ADDRESS_SECONDS },
        );
        if halved {
            format!(
                "{}/signed/{ARTIFACTS_CONTAINER}/{blob}?{signature}",
                world.endpoint
            )
        } else {
            format!(
                "{}?{signature}",
                world.blobs.address(ARTIFACTS_CONTAINER, &blob)
            )
        }
    };
    Ok(names
        .map(|name| (name.to_owned(), json!(address(name))))
        .collect())
}

/// Services that were asked for on a node, while the job runs.
pub(super) fn services(job: &Job, node: &str) -> Value {
    let leader = node == "0";
    let on_node = |service: &Value| leader || service["nodes"]["nodesValueType"] == "All";
    let there = job.status == "Running"
        && node
            .parse()
            .is_ok_and(|node: usize| node < job.node_count());
    let mut instances = Map::new();
    for (name, service) in job.asked["services"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, service)| there && on_node(service))
    {
        let kind = service["jobServiceType"].as_str().unwrap_or_default();
        let endpoint = format!("wss://ssh-{}-{node}.localhost/nbip/v1.0/ws-tcp", job.name);
        let shown = json!({"type": kind, "port": service["port"].as_u64().unwrap_or(22), "status": "Running", "endpoint": endpoint, "error": null, "properties": {"ProxyEndpoint": endpoint}});
        instances.insert(name.clone(), shown);
    }
    json!({"instances": instances})
}

/// The compute's name.
fn target(job: &Job) -> &str {
    job.text("computeId").rsplit('/').next().unwrap_or_default()
}
