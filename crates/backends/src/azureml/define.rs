//! The complete definition of a cluster, with everything that it refers to.

use super::config::AzureSettings;
use crate::registry::Caller;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use towline_core::config::{AzuremlConfig, Credential};
use towline_core::{Error, Result, network};
use towline_wire::runner::Variables;

/// Variables with which a machine or a session signs in without the Azure CLI.
const OF_SIGN_IN: [&str; 9] = [
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "MSI_ENDPOINT",
    "MSI_SECRET",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_AUTHORITY_HOST",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
];

/// Replaces references by their content, because the reader of the definition may be in another
/// folder, with another environment. Returns the variables that signing in needs.
pub(crate) fn define(
    name: &str,
    cluster: &mut AzuremlConfig,
    caller: &Caller<'_>,
) -> Result<Variables> {
    read_workspace(name, cluster, caller)?;
    let value = |name: &str| {
        caller
            .environment
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let by_cli = is_by_cli(cluster.credential.as_ref());
    let is_unset = cluster.credential.is_none() && cluster.profile.is_none();
    if cluster.profile.is_none() && by_cli && !is_unset {
        cluster.profile = value("AZURE_CONFIG_DIR");
    }
    let referred = match &cluster.credential {
        Some(Credential::Map(map)) => map
            .values()
            .filter_map(|value| value.strip_prefix("env:"))
            .collect(),
        _ => Vec::new(),
    };
    let may_be_stored = is_unset || is_by_device(cluster.credential.as_ref());
    // So that a process with another environment finds `az` and the keyring.
    let of_programs = ["PATH", "DBUS_SESSION_BUS_ADDRESS"];
    let wanted = OF_SIGN_IN
        .into_iter()
        .chain(referred)
        .chain(of_programs.into_iter().filter(|_| by_cli || may_be_stored));
    let mut variables: BTreeMap<String, String> = wanted
        .filter_map(|name| Some((name.to_owned(), value(name)?)))
        .collect();
    // Not `profile`, which would say that the configuration names the Azure CLI.
    if let Some(folder) = value("AZURE_CONFIG_DIR").filter(|folder| is_unset && !folder.is_empty())
    {
        let folder = caller.folder.join(folder).display().to_string();
        variables.insert("AZURE_CONFIG_DIR".to_owned(), folder);
    }
    // The proxy settings of this shell count, also if it has no proxy.
    variables.extend(network::VARIABLES.map(|name| {
        (
            name.to_owned(),
            value(name)
                .map(|value| absolute(caller.folder, name, value))
                .unwrap_or_default(),
        )
    }));
    Ok(Variables(variables))
}

/// An absolute path for a reader in another folder.
fn absolute(folder: &Path, name: &str, value: String) -> String {
    let is_file = matches!(
        name,
        "SSL_CERT_FILE" | "REQUESTS_CA_BUNDLE" | "CURL_CA_BUNDLE"
    ) && !value.is_empty();
    if is_file {
        folder.join(&value).display().to_string()
    } else {
        value
    }
}

/// Whether the user signs in, by a code.
fn is_by_device(credential: Option<&Credential>) -> bool {
    match credential {
        None => false,
        Some(Credential::Word(word)) => word == "device_code",
        Some(Credential::Map(map)) => map.contains_key("device_code"),
    }
}

/// Whether the Azure CLI signs in: no credential is configured, or only the account for the CLI.
fn is_by_cli(credential: Option<&Credential>) -> bool {
    match credential {
        None => true,
        Some(Credential::Word(word)) => word == "azure_cli",
        Some(Credential::Map(map)) => map
            .keys()
            .all(|key| key == "azure_cli" || key == "tenant_id"),
    }
}

/// Adds the values of a `config.json`.
fn read_workspace(name: &str, cluster: &mut AzuremlConfig, caller: &Caller<'_>) -> Result<()> {
    let Some(path) = cluster.config.clone() else {
        return Ok(());
    };
    let written = match (path.strip_prefix("~/"), caller.home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(&path),
    };
    let candidates = [
        written.clone(),
        caller.code_root.join(&written),
        caller.folder.join(&written),
    ];
    let text = candidates
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok());
    let text = text.ok_or_else(|| {
        Error::config(format!("cluster `{name}`: there is no file {path}"))
            .hint("the portal of the workspace has it: Download config.json")
    })?;
    let found = AzureSettings::new(name, cluster, None, Some(&text), "me")?;
    cluster.subscription = found.subscription;
    cluster.resource_group = found.resource_group;
    cluster.workspace = Some(found.workspace);
    cluster.config = None;
    Ok(())
}
