//! Workspaces and subscriptions that the user may see.

use super::client::{list, url, versioned};
use super::config::{AzureSettings, Scope};
use towline_core::cloud::{Call, Cloud};
use towline_core::{Error, ErrorKind, Result, suggest};

const SUBSCRIPTIONS_API: &str = "2022-12-01";

/// Finds a workspace by its name among all that the user may see. If there are several, the
/// configuration must say which.
pub(super) fn find_workspace(cloud: &dyn Cloud, config: &AzureSettings) -> Result<Scope> {
    let (all, notes) = workspaces(cloud)?;
    let fits = |scope: &&Scope| {
        let is = |wanted: &Option<String>, found: &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
        };
        scope.workspace.eq_ignore_ascii_case(&config.workspace)
            && is(&config.subscription, &scope.subscription)
            && is(&config.resource_group, &scope.resource_group)
    };
    let found: Vec<&Scope> = all.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let names: Vec<&str> = all.iter().map(|scope| scope.workspace.as_str()).collect();
            let none = Error::not_found(format!(
                "you may use no workspace that is called `{}`",
                config.workspace
            ));
            Err(notes
                .into_iter()
                .fold(none, Error::hint)
                .maybe_hint(suggest::did_you_mean(
                    &config.workspace,
                    names.iter().copied(),
                ))
                .hint(if names.is_empty() {
                    "you may use none at all; is it the right account? `az account show`".to_owned()
                } else {
                    format!("there are: {}", names.join(", "))
                }))
        }
        several => Err(several.iter().fold(
            Error::new(
                ErrorKind::Ambiguous,
                format!(
                    "{} workspaces are called `{}`",
                    several.len(),
                    config.workspace
                ),
            ),
            |error, scope| {
                error.hint(format!(
                    "subscription: {}, resource_group: {}",
                    scope.subscription, scope.resource_group
                ))
            },
        )),
    }
}

/// Every workspace that the user may see, and notes about failed calls: one closed subscription
/// hides no other.
pub(super) fn workspaces(cloud: &dyn Cloud) -> Result<(Vec<Scope>, Vec<String>)> {
    let (mut scopes, mut notes) = (Vec::new(), Vec::new());
    for subscription in subscriptions(cloud)? {
        match workspaces_in(cloud, &subscription) {
            Ok(found) => scopes.extend(found),
            Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
            Err(error) => notes.push(format!("subscription {subscription}: {error}")),
        }
    }
    Ok((scopes, notes))
}

pub(super) fn subscriptions(cloud: &dyn Cloud) -> Result<Vec<String>> {
    let all = list(
        cloud,
        "your subscriptions",
        Call::get(versioned(cloud, "/subscriptions", SUBSCRIPTIONS_API)),
    )?;
    Ok(all
        .iter()
        .filter_map(|subscription| subscription["subscriptionId"].as_str())
        .map(ToOwned::to_owned)
        .collect())
}

pub(super) fn workspaces_in(cloud: &dyn Cloud, subscription: &str) -> Result<Vec<Scope>> {
    let path = format!(
        "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/workspaces"
    );
    let found = list(cloud, "workspaces", Call::get(url(cloud, &path)))?;
    Ok(found
        .iter()
        .filter_map(|workspace| Scope::parse(workspace["id"].as_str()?))
        .collect())
}
