//! Asks a workspace what it is and what its jobs run on.

use super::client::{found, get, good, list, next_page, url, versioned};
use super::config::{AzureSettings, Scope, Target};
use super::data::is_registered_by_tow;
use super::machines::{images, instances, offers, pods};
use super::site::{
    AzureSite, Flavour, IdentityFacts, InstanceFacts, QuotaFacts, StoreFacts, short,
};
use super::suggestions;
use super::workspaces::find_workspace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use towline_core::cloud::{Audience, Call, Cloud};
use towline_core::cluster::{Facts, GpuFacts, GpuMake, NodeFacts};
use towline_core::{Error, Result};

/// The API version that has virtual clusters and their machines.
pub(super) const CLUSTERS_API: &str = "2021-03-01-preview";

pub(super) fn probe(cloud: &dyn Cloud, config: &AzureSettings) -> Result<AzureSite> {
    let scope = match config.scope() {
        Some(scope) => scope,
        None => find_workspace(cloud, config)?,
    };
    let Answers {
        workspace,
        stores,
        store,
        compute_id,
        target,
    } = ask(cloud, &scope, config)?;
    let location = workspace["location"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let properties = &workspace["properties"];
    let api = discover(
        cloud,
        properties["discoveryUrl"].as_str().unwrap_or_default(),
    )?;
    let flavour = flavour(config, &target);
    let quotas = quotas(&target);
    let mut instances = instances(
        cloud,
        &offers(&scope, &compute_id, &location, &quotas, flavour),
        flavour,
    )?;
    instances.extend(pods(&target));
    let images = images(cloud, &scope, &compute_id, flavour);
    let mut site = AzureSite {
        compute_id,
        flavour,
        tenant: properties["tenantId"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        api,
        store,
        store_names: names(&stores),
        stores: containers(&stores),
        vault: properties["keyVault"]
            .as_str()
            .filter(|id| !id.is_empty())
            .map(ToOwned::to_owned),
        identities: identities(&workspace["identity"]),
        vm_size: target["properties"]["properties"]["vmSize"]
            .as_str()
            .map(ToOwned::to_owned),
        most_nodes: target["properties"]["properties"]["scaleSettings"]["maxNodeCount"]
            .as_u64()
            .and_then(|most| u32::try_from(most).ok()),
        usual_pod: target["properties"]["properties"]["defaultInstanceType"]
            .as_str()
            .map(ToOwned::to_owned),
        quotas,
        instances,
        images,
        studio: cloud.studio()?,
        // The signed-in user may use the workspace even if the name is unknown.
        who: cloud.who().ok(),
        facts: Facts::default(),
        location,
        scope,
    };
    site.facts = facts(&site, &target, config);
    Ok(site)
}

/// The service's answers about a workspace and about the target of its jobs.
struct Answers {
    workspace: Value,
    stores: Value,
    /// The default one of `stores`.
    store: StoreFacts,
    compute_id: String,
    /// The compute or the virtual cluster.
    target: Value,
}

fn ask(cloud: &dyn Cloud, scope: &Scope, config: &AzureSettings) -> Result<Answers> {
    let id = scope.id();
    let (compute_id, target) = match &config.target {
        Target::Compute(name) => (
            format!("{id}/computes/{name}"),
            url(cloud, &format!("{id}/computes/{name}")),
        ),
        Target::VirtualCluster(name) => (
            cluster_id(scope, name),
            versioned(cloud, &cluster_id(scope, name), CLUSTERS_API),
        ),
    };
    let calls = [
        Call::get(url(cloud, &id)),
        Call::get(url(cloud, &format!("{id}/datastores"))),
        Call::get(target),
    ];
    let mut answers = cloud.call_all(&calls).into_iter();
    let mut next = || {
        answers
            .next()
            .unwrap_or_else(|| Err(Error::bug("an answer is missing")))
    };
    let workspace = next()?;
    if !workspace.is_good() {
        return Err(suggestions::no_workspace(cloud, scope, &workspace));
    }
    let workspace = good(&format!("workspace `{}`", scope.workspace), &workspace)?;
    let stores = all_of(
        cloud,
        "the workspace's datastores",
        good("the workspace's datastores", &next()?)?,
    )?;
    let store = store(&stores)?;
    let (compute_id, target) =
        match found(&format!("what cluster `{}` runs on", config.name), &next()?)? {
            Some(target) => (compute_id, target),
            None => suggestions::target(cloud, scope, config)?,
        };
    Ok(Answers {
        workspace,
        stores,
        store,
        compute_id,
        target,
    })
}

/// The id of a virtual cluster. A name alone means the workspace's resource group.
pub(super) fn cluster_id(scope: &Scope, name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("{}/virtualclusters/{name}", scope.provider())
    }
}

/// The workspace's names of its containers, without its own default ones, which are not for users'
/// data.
fn containers(answer: &Value) -> BTreeMap<String, String> {
    let stores = answer["value"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|store| store["properties"]["datastoreType"] == "AzureBlob");
    let entry = |store: &Value| {
        let text = |key: &str| store["properties"][key].as_str();
        let name = store["name"]
            .as_str()
            .filter(|name| !is_registered_by_tow(name))?;
        Some((
            format!("{}/{}", text("accountName")?, text("containerName")?),
            name.to_owned(),
        ))
    };
    stores.filter_map(entry).collect()
}

/// The default datastore, through which code and status documents travel.
fn store(answer: &Value) -> Result<StoreFacts> {
    let all = || answer["value"].as_array().into_iter().flatten();
    let usual = all()
        .find(|store| store["properties"]["isDefault"] == true)
        .or_else(|| all().find(|store| store["name"] == "workspaceblobstore"));
    let store = usual.ok_or_else(|| {
        Error::unsupported("the workspace has no default datastore, which code travels through")
    })?;
    let text = |key: &str| {
        store["properties"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    if store["properties"]["datastoreType"] != "AzureBlob" {
        return Err(Error::unsupported(
            "the workspace's default datastore, which code travels through, is not a blob \
                container",
        ));
    }
    let (account, container) = (text("accountName"), text("containerName"));
    let (protocol, suffix) = (text("protocol"), text("endpoint"));
    let protocol = if protocol.is_empty() {
        "https"
    } else {
        &protocol
    };
    let suffix = if suffix.is_empty() {
        "core.windows.net"
    } else {
        &suffix
    };
    let name = store["name"]
        .as_str()
        .unwrap_or("workspaceblobstore")
        .to_owned();
    Ok(StoreFacts {
        name,
        endpoint: format!("{protocol}://{account}.blob.{suffix}"),
        account,
        container,
    })
}

fn names(list: &Value) -> BTreeSet<String> {
    list["value"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["name"].as_str())
        .map(str::to_owned)
        .collect()
}

/// A list, completed by the pages that follow the first.
pub(super) fn all_of(cloud: &dyn Cloud, what: &str, mut first: Value) -> Result<Value> {
    if let Some(next) = next_page(cloud, what, &first, Audience::Management)? {
        let others = list(cloud, what, next)?;
        if let Some(values) = first["value"].as_array_mut() {
            values.extend(others);
        }
    }
    Ok(first)
}

fn flavour(config: &AzureSettings, target: &Value) -> Flavour {
    match (&config.target, target["properties"]["computeType"].as_str()) {
        (Target::VirtualCluster(_), _) => Flavour::Singularity,
        (_, Some(kind))
            if kind.eq_ignore_ascii_case("Kubernetes") || kind.eq_ignore_ascii_case("AKS") =>
        {
            Flavour::Itp
        }
        _ => Flavour::Aml,
    }
}

/// The URL of the workspace's own services.
fn discover(cloud: &dyn Cloud, address: &str) -> Result<String> {
    let answer = get(
        cloud,
        "the workspace's services",
        &Call::get(address).audience(Audience::Nobody),
    )?
    .unwrap_or(Value::Null);
    let api = answer["api"]
        .as_str()
        .or_else(|| answer["history"].as_str());
    api.map(|api| api.trim_end_matches('/').to_owned())
        .ok_or_else(|| Error::unreachable("the workspace does not say where its run history is"))
}

fn identities(identity: &Value) -> BTreeMap<String, IdentityFacts> {
    let entries = identity["userAssignedIdentities"]
        .as_object()
        .into_iter()
        .flatten();
    entries
        .filter_map(|(id, facts)| {
            let name = id.rsplit('/').next()?.to_owned();
            Some((
                name,
                IdentityFacts {
                    id: id.clone(),
                    client_id: facts["clientId"].as_str().unwrap_or_default().to_owned(),
                },
            ))
        })
        .collect()
}

/// A whole number, which the service sometimes writes with a fraction.
pub(super) fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| {
        value.as_f64().map_or(0, |number| {
            format!("{:.0}", number.max(0.0).floor())
                .parse()
                .unwrap_or(0)
        })
    })
}

pub(super) fn quotas(cluster: &Value) -> Vec<QuotaFacts> {
    let regions = cluster["properties"]["managed"]["quotas"]
        .as_object()
        .into_iter()
        .flatten();
    let limits = regions.flat_map(|(region, of)| {
        of["limits"]
            .as_array()
            .into_iter()
            .flatten()
            .map(move |limit| (region, limit))
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let quota = |(region, limit): (&String, &Value)| QuotaFacts {
        region: region.clone(),
        series: text(if limit["name"].is_string() {
            &limit["name"]
        } else {
            &limit["id"]
        }),
        tier: text(&limit["slaTier"]),
        limit: limit["limit"].as_u64().unwrap_or(0),
        used: limit["used"].as_u64().unwrap_or(0),
    };
    limits.map(quota).collect()
}

/// The facts of the cluster in the common form: one node for each machine that it can have.
fn facts(site: &AzureSite, target: &Value, config: &AzureSettings) -> Facts {
    let gpus_of = |instance: Option<&InstanceFacts>| {
        config
            .gpus_per_node
            .unwrap_or_else(|| instance.map_or(0, |instance| instance.gpus))
    };
    let node = |name: String, state: &str, instance: Option<&InstanceFacts>, busy: bool| {
        let kind = instance.map_or_else(
            || site.vm_size.clone().unwrap_or_default(),
            |instance| instance.name.clone(),
        );
        let make = if site.has_amd(&kind) {
            GpuMake::Amd
        } else {
            GpuMake::Nvidia
        };
        let gpu = |index| GpuFacts {
            index,
            name: short(&kind).to_owned(),
            make,
            busy_with: busy.then(|| "a job".to_owned()),
            ..GpuFacts::default()
        };
        let cpus = instance.map_or(0, |instance| instance.cpus);
        NodeFacts {
            name,
            state: state.to_owned(),
            cpus,
            cpus_used: if busy { cpus } else { 0 },
            memory: instance.map_or(0, |instance| instance.memory),
            gpus: (0..gpus_of(instance)).map(gpu).collect(),
            ..NodeFacts::default()
        }
    };
    let mut facts = Facts::default();
    if site.flavour == Flavour::Singularity {
        facts.nodes = site
            .instances
            .iter()
            .map(|instance| node(instance.name.clone(), "offered", Some(instance), false))
            .collect();
    } else {
        let own = &target["properties"]["properties"];
        let name = target["name"].as_str().unwrap_or(&config.name);
        let instance = site
            .vm_size
            .as_deref()
            .or_else(|| own["defaultInstanceType"].as_str())
            .and_then(|size| site.instance(size));
        let busy = own["nodeStateCounts"]["runningNodeCount"]
            .as_u64()
            .unwrap_or(0);
        let most = u64::from(site.most_nodes.unwrap_or(1)).clamp(1, 1_000);
        let state = |number| if number < busy { "running" } else { "offered" };
        facts.nodes = (0..most)
            .map(|number| {
                node(
                    format!("{name}-{number}"),
                    state(number),
                    instance,
                    number < busy,
                )
            })
            .collect();
    }
    if facts.nodes.is_empty() {
        facts
            .nodes
            .push(node(config.name.clone(), "unknown", None, false));
        facts
            .notes
            .push("the service does not list its machines".to_owned());
    }
    facts
}
