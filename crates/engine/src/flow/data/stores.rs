//! A datastore of the configuration as a run gets it. The secrets of its credentials are held
//! apart.

use crate::flow::outside::Outside;
use std::collections::btree_map::Entry;
use std::path::Path;
use towline_core::config::{Credential, Datastore, StoreKind};
use towline_core::redact::SecretSet;
use towline_core::resolve::NamedStore;
use towline_core::secret_name::SecretName;
use towline_core::suggest::did_you_mean;
use towline_core::{Error, Result};
use towline_host::surroundings;

/// The datastore of that name. Folders and programs of a far cluster are not checked here, because
/// only its nodes have them. `at` says in errors where the name is written.
pub fn store(
    outside: &dyn Outside,
    at: &str,
    name: &str,
    is_here: bool,
    secrets: &mut SecretSet,
) -> Result<NamedStore> {
    let mut datastore = configured(outside, at, name)?;
    if datastore.kind == StoreKind::AzureBlob && datastore.endpoint.is_none() {
        datastore.endpoint = outside
            .variables()
            .get("TOW_AZURE_BLOB_ENDPOINT")
            .map(str::to_owned);
    }
    if !is_here {
        check_ssh_config(at, name, &datastore)?;
    }
    // Opening finds every mistake that can be found without asking the store.
    if is_here || datastore.kind != StoreKind::Folder {
        outside.check_datastore(name, &datastore)?;
    }
    if !is_here {
        bring_files(outside, name, &mut datastore, secrets)?;
    }
    for (key, reference) in references(&datastore) {
        if let Entry::Vacant(free) = secrets.0.entry(SecretName::Datastore(reference.to_owned())) {
            free.insert(outside.secret(&format!("datastore `{name}`"), key, reference)?);
        }
    }
    if let Some(home) = surroundings::home() {
        write_out_home(&mut datastore, &home, is_here);
    }
    Ok(NamedStore {
        name: name.to_owned(),
        datastore,
    })
}

/// The datastore of that name as it is configured, with no credential that a run does not need.
fn configured(outside: &dyn Outside, at: &str, name: &str) -> Result<Datastore> {
    let config = &outside.layers()?.config;
    let Some(datastore) = config.datastores.get(name) else {
        let known: Vec<&str> = config.datastores.keys().map(String::as_str).collect();
        let hint =
            did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known.as_slice() {
                [] => "write one under `datastores:` in towline.yaml: nas: \
                {kind: folder, path: /mnt/nas}"
                    .to_owned(),
                known => format!("known: {}", known.join(", ")),
            });
        return Err(
            Error::config(format!("{at}: no datastore is called `{name}`"))
                .hint(hint)
                .about(format!("{}.datastore", at.trim_matches('`'))),
        );
    };
    let mut datastore = datastore.clone();
    if let Some(Credential::Map(map)) = &mut datastore.credential
        && map.contains_key("sas")
    {
        // It only signs addresses for `tow url`: a run gets no more than it needs.
        map.remove("account_key");
    }
    Ok(datastore)
}

/// An `ssh_config` is a file of this machine: the nodes of another cluster do not have it.
fn check_ssh_config(at: &str, name: &str, datastore: &Datastore) -> Result<()> {
    if let Some(file) = datastore
        .ssh_config
        .as_ref()
        .filter(|_| datastore.kind == StoreKind::SshFolder)
    {
        return Err(Error::refused(format!(
            "{at}: datastore `{name}` is reached with `ssh_config: \
            {file}`, a file of this machine that no node has"
        ))
        .hint(
            "name `host` as the nodes of the cluster reach it, without `ssh_config`; keys \
                and names are then those of your home there",
        )
        .hint("or copy the data first with `tow cp`, to a store that the cluster has"));
    }
    Ok(())
}

/// Writes `~/` out, as this user's home.
fn write_out_home(datastore: &mut Datastore, home: &Path, is_here: bool) {
    if let Some(Credential::Map(map)) = &mut datastore.credential {
        // The process that moves the data may have another home.
        for value in map.values_mut() {
            for kind in ["file:", "yaml:"] {
                if let Some(below) = value
                    .strip_prefix(kind)
                    .and_then(|path| path.strip_prefix("~/"))
                {
                    *value = format!("{kind}{}", home.join(below).display());
                }
            }
        }
    }
    if is_here
        && datastore.kind == StoreKind::Folder
        && let Some(path) = &datastore.path
        && let Some(below) = path.strip_prefix("~/")
    {
        datastore.path = Some(home.join(below).display().to_string());
    }
}

/// Reads credentials in files of this machine, and adds their values to the secrets.
fn bring_files(
    outside: &dyn Outside,
    name: &str,
    datastore: &mut Datastore,
    secrets: &mut SecretSet,
) -> Result<()> {
    let Some(Credential::Map(map)) = &mut datastore.credential else {
        return Ok(());
    };
    for (key, value) in map.iter_mut().filter(|(_, value)| is_in_file(value)) {
        let secret = outside.secret(&format!("datastore `{name}`"), key, value)?;
        *value = format!("keyring:{value}");
        secrets
            .0
            .insert(SecretName::Datastore(value.clone()), secret);
    }
    Ok(())
}

/// Whether a reference leads to a file of this machine.
pub(super) fn is_in_file(reference: &str) -> bool {
    reference.starts_with("file:") || reference.starts_with("yaml:")
}

/// References of a credential to the environment or the keyring of this process.
pub(super) fn references(datastore: &Datastore) -> Vec<(&str, &str)> {
    let Some(Credential::Map(map)) = &datastore.credential else {
        return Vec::new();
    };
    let is_reference = |value: &str| value.starts_with("env:") || value.starts_with("keyring:");
    map.iter()
        .filter(|(_, value)| is_reference(value))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_cannot_use_a_file_of_this_machine() {
        let store = |kind, file: Option<&str>| Datastore {
            kind,
            ssh_config: file.map(str::to_owned),
            ..Datastore::default()
        };
        let check = |datastore: &Datastore| check_ssh_config("io.a", "nas", datastore).is_ok();
        assert!(!check(&store(StoreKind::SshFolder, Some("~/.ssh/lab"))));
        assert!(check(&store(StoreKind::SshFolder, None)));
        assert!(check(&store(StoreKind::Folder, Some("~/.ssh/lab"))));
    }
}
