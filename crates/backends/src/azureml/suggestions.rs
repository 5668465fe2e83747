//! Resources that the configuration names and the service does not have: found elsewhere, or
//! reported with suggestions.

use super::client::{get, list, refusal, url, versioned};
use super::config::{AzureSettings, Scope, Target};
use super::discover::listed_clusters;
use super::probe::CLUSTERS_API;
use super::workspaces::{subscriptions, workspaces_in};
use serde_json::Value;
use towline_core::cloud::{Call, Cloud, Reply};
use towline_core::{Error, ErrorKind, Result, suggest};

const DISCOVER_HINT: &str = "`tow clusters --discover` lists what you may use";

/// Why a fully named workspace cannot be used.
pub(super) fn no_workspace(cloud: &dyn Cloud, scope: &Scope, reply: &Reply) -> Error {
    let error = refusal(&format!("workspace `{}`", scope.workspace), reply);
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    // A user who may not list workspaces still gets the error.
    let all = workspaces_in(cloud, &scope.subscription).unwrap_or_default();
    let here = |other: &&Scope| {
        other
            .resource_group
            .eq_ignore_ascii_case(&scope.resource_group)
    };
    let elsewhere = all
        .iter()
        .find(|other| other.workspace.eq_ignore_ascii_case(&scope.workspace));
    let near = suggest::did_you_mean(
        &scope.workspace,
        all.iter()
            .filter(here)
            .map(|other| other.workspace.as_str()),
    );
    error.maybe_hint(
        elsewhere
            .map(|other| {
                format!(
                    "a workspace of that name is in resource_group `{}`",
                    other.resource_group
                )
            })
            .or(near),
    )
}

/// The target of jobs by its id, if the configured id does not exist.
pub(super) fn target(
    cloud: &dyn Cloud,
    scope: &Scope,
    config: &AzureSettings,
) -> Result<(String, Value)> {
    match &config.target {
        Target::Compute(name) => Err(no_compute(cloud, scope, config, name)),
        Target::VirtualCluster(name) => cluster_elsewhere(cloud, scope, name),
    }
}

fn no_compute(cloud: &dyn Cloud, scope: &Scope, config: &AzureSettings, name: &str) -> Error {
    let error = Error::not_found(format!(
        "workspace `{}` has no compute `{name}`",
        config.workspace
    ));
    let listed = list(
        cloud,
        "computes",
        Call::get(url(cloud, &format!("{}/computes", scope.id()))),
    )
    .unwrap_or_default();
    let names: Vec<&str> = listed
        .iter()
        .filter_map(|compute| compute["name"].as_str())
        .collect();
    match names.as_slice() {
        [] => error.hint(DISCOVER_HINT),
        names => error
            .maybe_hint(suggest::did_you_mean(name, names.iter().copied()))
            .hint(format!("it has: {}", names.join(", "))),
    }
}

/// A virtual cluster need not be in the workspace's resource group: finds the one of that name that
/// the user may see.
fn cluster_elsewhere(cloud: &dyn Cloud, scope: &Scope, name: &str) -> Result<(String, Value)> {
    let error = Error::not_found(format!(
        "there is no virtual cluster `{name}` that you may use"
    ));
    let subscriptions = subscriptions(cloud).unwrap_or_else(|_| vec![scope.subscription.clone()]);
    let Ok(all) = listed_clusters(
        cloud,
        &subscriptions.iter().map(String::as_str).collect::<Vec<_>>(),
    ) else {
        return Err(error.hint(DISCOVER_HINT));
    };
    let named = |id: &str| id.rsplit('/').next().unwrap_or_default().to_owned();
    let mut found: Vec<(String, Value)> = all
        .iter()
        .filter(|(id, _)| named(id).eq_ignore_ascii_case(name))
        .cloned()
        .collect();
    match (found.len(), found.pop()) {
        // The resource graph may be hours old.
        (1, Some((id, known))) => {
            let fresh = get(
                cloud,
                &format!("virtual cluster `{name}`"),
                &Call::get(versioned(cloud, &id, CLUSTERS_API)),
            )?;
            Ok((id, fresh.unwrap_or(known)))
        }
        (0, _) => {
            let names: Vec<String> = all.iter().map(|(id, _)| named(id)).collect();
            let error = error.maybe_hint(suggest::did_you_mean(
                name.rsplit('/').next().unwrap_or(name),
                names.iter().map(String::as_str),
            ));
            Err(error.hint(if names.is_empty() {
                DISCOVER_HINT.to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            }))
        }
        (several, last) => {
            let error = Error::new(
                ErrorKind::Ambiguous,
                format!("{several} virtual clusters are called `{name}`"),
            );
            Err(found.iter().chain(&last).fold(error, |error, (id, _)| {
                error.hint(format!("virtual_cluster: {id}"))
            }))
        }
    }
}
