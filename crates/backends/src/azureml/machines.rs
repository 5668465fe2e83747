//! Kinds of machines: of a virtual cluster, of Azure ML in a region, of an attached Kubernetes.

use super::client::{url, versioned};
use super::config::Scope;
use super::discover::IMAGES_API;
use super::probe::{CLUSTERS_API, all_of, whole};
use super::site::{AzureSite, Flavour, InstanceFacts, QuotaFacts, is_amd, short};
use serde_json::Value;
use std::collections::BTreeSet;
use towline_core::Result;
use towline_core::cloud::{Call, Cloud};

/// The URLs that list kinds of machines. For a virtual cluster there is one for every region with a
/// quota, below the cluster's own subscription.
pub(super) fn offers(
    scope: &Scope,
    cluster: &str,
    location: &str,
    quotas: &[QuotaFacts],
    flavour: Flavour,
) -> Vec<String> {
    let is_cluster = flavour == Flavour::Singularity;
    let own = cluster
        .split('/')
        .nth(2)
        .filter(|_| is_cluster)
        .unwrap_or(&scope.subscription);
    let mut regions: BTreeSet<&str> = quotas
        .iter()
        .map(|quota| quota.region.as_str())
        .filter(|region| is_cluster && !region.is_empty())
        .collect();
    regions.insert(location);
    let word = if is_cluster {
        "instancetypeseries"
    } else {
        "vmSizes"
    };
    regions.iter().map(|region| format!("/subscriptions/{own}/providers/Microsoft.MachineLearningServices/locations/{region}/{word}")).collect()
}

/// Kinds of machines of virtual clusters, or of Azure ML in that region. A failed call is no error.
pub(super) fn instances(
    cloud: &dyn Cloud,
    places: &[String],
    flavour: Flavour,
) -> Result<Vec<InstanceFacts>> {
    let call = |place: &String| match flavour {
        Flavour::Singularity => Call::get(versioned(cloud, place, CLUSTERS_API)),
        _ => Call::get(url(cloud, place)),
    };
    let mut found: Vec<InstanceFacts> = Vec::new();
    for reply in cloud.call_all(&places.iter().map(call).collect::<Vec<_>>()) {
        let reply = reply?;
        let Some(answer) = reply.json().filter(|_| reply.is_good()) else {
            continue;
        };
        for instance in listed_instances(&all_of(cloud, "kinds of machines", answer)?) {
            if !found.iter().any(|known| known.name == instance.name) {
                found.push(instance);
            }
        }
    }
    Ok(found)
}

/// The kinds that a job can name: those of a virtual cluster, or the pods of Kubernetes. A compute
/// has one kind.
pub(super) fn choices(site: &AzureSite) -> Vec<(String, String)> {
    if let (Flavour::Aml, Some(size)) = (site.flavour, &site.vm_size) {
        return vec![(size.clone(), "the machines of this compute".to_owned())];
    }
    let described = |instance: &InstanceFacts| {
        let words = match (instance.gpus, instance.cpus) {
            (0, 0) => instance.series.clone(),
            (0, cpus) => format!("{cpus} CPUs"),
            (gpus, cpus) => format!("{gpus} GPUs, {cpus} CPUs"),
        };
        (short(&instance.name).to_owned(), words)
    };
    site.instances.iter().map(described).collect()
}

fn listed_instances(answer: &Value) -> Vec<InstanceFacts> {
    let number = |value: &Value| u32::try_from(whole(value)).unwrap_or(0);
    let mut found = Vec::new();
    for series in answer["value"]
        .as_array()
        .or_else(|| answer["amlCompute"].as_array())
        .into_iter()
        .flatten()
    {
        let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
        match series["properties"]["instanceTypes"].as_array() {
            Some(types) => found.extend(types.iter().map(|kind| InstanceFacts {
                name: name(kind),
                series: name(series),
                gpus: number(&kind["numberOfGPUs"]),
                cpus: number(&kind["numberOfCores"]),
                memory: u64::from(number(&kind["memoryInMB"])) << 20,
                amd: is_amd(&name(kind)),
            })),
            None => found.push(InstanceFacts {
                name: name(series),
                series: series["family"]
                    .as_str()
                    .or_else(|| series["instanceTypeSeriesId"].as_str())
                    .unwrap_or_default()
                    .to_owned(),
                gpus: number(&series["gpus"]).max(number(&series["numberOfGPUs"])),
                cpus: number(&series["vCPUs"]).max(number(&series["numberOfCores"])),
                memory: whole(&series["memoryGB"]) << 30,
                amd: is_amd(&name(series)),
            }),
        }
    }
    found
}

/// Images of a virtual cluster, listed below its own subscription. A failed call is no error.
pub(super) fn images(
    cloud: &dyn Cloud,
    scope: &Scope,
    cluster: &str,
    flavour: Flavour,
) -> BTreeSet<String> {
    if flavour != Flavour::Singularity {
        return BTreeSet::new();
    }
    let mut subscriptions = vec![
        cluster.split('/').nth(2).unwrap_or(&scope.subscription),
        &scope.subscription,
    ];
    subscriptions.dedup();
    let call = |subscription: &&str| {
        Call::get(versioned(
            cloud,
            &format!("/subscriptions/{subscription}/providers/Microsoft.Singularity/images"),
            IMAGES_API,
        ))
    };
    let replies = cloud.call_all(&subscriptions.iter().map(call).collect::<Vec<_>>());
    let lists = replies
        .into_iter()
        .flatten()
        .filter(towline_core::cloud::Reply::is_good)
        .filter_map(|reply| all_of(cloud, "images", reply.json()?).ok());
    let names = |list: Value| {
        list["value"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|image| Some(image["name"].as_str()?.to_owned()))
            .collect::<Vec<_>>()
    };
    lists.flat_map(names).collect()
}

/// Kinds of pods that an attached Kubernetes offers.
pub(super) fn pods(target: &Value) -> Vec<InstanceFacts> {
    let kinds = target["properties"]["properties"]["instanceTypes"]
        .as_object()
        .into_iter()
        .flatten();
    let text = |value: &Value| {
        value.as_str().map_or_else(
            || {
                value
                    .as_u64()
                    .map(|number| number.to_string())
                    .unwrap_or_default()
            },
            ToOwned::to_owned,
        )
    };
    let kind = |(name, of): (&String, &Value)| {
        let (requests, limits) = (&of["resources"]["requests"], &of["resources"]["limits"]);
        let count = |key: &str| {
            [&limits[key], &requests[key]]
                .into_iter()
                .find_map(|value| text(value).parse::<u32>().ok())
        };
        let (nvidia, amd) = (count("nvidia.com/gpu"), count("amd.com/gpu"));
        InstanceFacts {
            name: name.clone(),
            series: "kubernetes".to_owned(),
            gpus: nvidia.or(amd).unwrap_or(0),
            amd: nvidia.is_none() && amd.is_some() || is_amd(name),
            // `500m` is half a CPU and counts as one.
            cpus: text(&requests["cpu"])
                .trim_end_matches('m')
                .parse()
                .map_or(1, |cpus: u32| {
                    if text(&requests["cpu"]).ends_with('m') {
                        cpus.div_ceil(1000)
                    } else {
                        cpus
                    }
                }),
            memory: text(&requests["memory"])
                .trim_end_matches('i')
                .parse::<towline_core::quantity::Memory>()
                .map_or(0, |memory| memory.0),
        }
    };
    kinds.map(kind).collect()
}
