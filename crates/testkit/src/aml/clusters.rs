//! Virtual clusters of Singularity. No published description has them; they are shaped as public
//! tools read them.

use super::answer::{Outcome, good, refusal};
use super::call::Call;
use super::faults::Quota;
use super::ids::{LOCATION, SUBSCRIPTION};
use super::world::World;
use serde_json::{Value, json};

const CLUSTER_NAME: &str = "vc";
/// Not the group of the workspaces, because virtual clusters belong to others.
const CLUSTER_RESOURCE_GROUP: &str = "towclusters";

/// The quotas of the only cluster, until a test changes them.
pub(super) fn quotas() -> Vec<Quota> {
    let limits = [
        ("NDAMv4", "Premium", 64, 48),
        ("NDAMv4", "Standard", 32, 8),
        ("NDAMv4", "Basic", 128, 0),
        ("NDH100v5", "Premium", 16, 16),
    ];
    let quota = |(series, tier, limit, used): (&str, &str, u32, u32)| Quota {
        region: LOCATION.to_owned(),
        series: series.to_owned(),
        tier: tier.to_owned(),
        limit,
        used,
    };
    limits.map(quota).into()
}

pub(super) fn id() -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/{CLUSTER_RESOURCE_GROUP}/providers/Microsoft.MachineLearningServices/virtualclusters/{CLUSTER_NAME}"
    )
}

fn cluster(world: &World) -> Value {
    let mut regions = json!({});
    for quota in &world.conditions().quotas {
        let limit = json!({"id": quota.series, "name": quota.series, "slaTier": quota.tier, "limit": quota.limit, "used": quota.used});
        match regions[&quota.region]["limits"].as_array_mut() {
            Some(limits) => limits.push(limit),
            None => regions[&quota.region] = json!({"limits": [limit]}),
        }
    }
    json!({
        "id": id(), "name": CLUSTER_NAME, "type": "microsoft.machinelearningservices/virtualclusters", "location": LOCATION, "tags": {},
        "subscriptionId": SUBSCRIPTION, "resourceGroup": CLUSTER_RESOURCE_GROUP,
        "properties": {
            "provisioningState": "Succeeded", "displayName": CLUSTER_NAME,
            "managed": {
                "quotas": regions,
                "defaultGroupPolicyOverallQuotas": {"limits": [{"id": "NDAMv4", "name": "NDAMv4", "slaTier": "Premium", "limit": 32, "used": 16}]},
            },
        },
    })
}

pub(super) fn get(
    world: &World,
    call: &Call,
    subscription: &str,
    group: &str,
    name: &str,
) -> Outcome {
    if call.method != "GET" {
        return Err(super::routes::not_allowed());
    }
    let fits =
        subscription == SUBSCRIPTION && group == CLUSTER_RESOURCE_GROUP && name == CLUSTER_NAME;
    let missing = || {
        refusal(
            404,
            "ResourceNotFound",
            &format!(
                "The Resource 'Microsoft.MachineLearningServices/virtualclusters/{name}' was not \
                    found."
            ),
        )
    };
    if fits {
        good(cluster(world))
    } else {
        Err(missing())
    }
}

/// The resource graph, for the one query that clients send.
pub(super) fn query(world: &World, call: &Call) -> Outcome {
    let asked = call.json()?;
    let text = asked["query"].as_str().unwrap_or_default().to_lowercase();
    if text.is_empty() {
        return Err(refusal(
            400,
            "BadRequest",
            "Please provide below info when asking for support: the query is missing.",
        ));
    }
    let found = if text.contains("microsoft.machinelearningservices/virtualclusters") {
        vec![cluster(world)]
    } else {
        Vec::new()
    };
    good(
        json!({"totalRecords": found.len(), "count": found.len(), "data": found, "facets": [], "resultTruncated": "false"}),
    )
}

pub(super) fn instance_types(location: &str) -> Value {
    let kind = |name: &str, gpus: u32, cpus: u32, memory: u32| json!({"name": name, "description": name, "numberOfGPUs": gpus, "numberOfCores": cpus, "memoryInMB": memory, "location": location});
    json!({"value": [
        {"id": "NDAMv4", "name": "NDAMv4", "properties": {"instanceTypes": [kind("ND96amrs_A100_v4", 8, 96, 1_900_000), kind("ND12am_A100_v4", 1, 12, 237_500)]}},
        {"id": "NDH100v5", "name": "NDH100v5", "properties": {"instanceTypes": [kind("ND96_H100_v5", 8, 96, 1_900_000)]}},
    ]})
}

pub(super) fn images() -> Value {
    let image = |name: &str| json!({"id": name, "name": name, "properties": {"imageName": name, "status": "Active"}});
    json!({"value": [image("amlt-sing/acpt-2.2.1-py3.10-cuda12.1"), image("base/job/pytorch/acpt-2.1-py3.10-cuda12.1:20240101")]})
}
