//! The `storage` of a toolkit's submission, as a datastore.

use super::Converted;
use super::section::{Section, wrong};
use towline_core::Result;
use towline_core::yaml::Node;

/// `storage` of 1.3: the name of its datastore. Key and SAS are not copied.
pub(super) fn storage(form: &Section<'_>, converted: &mut Converted) -> Result<Option<String>> {
    let Some(keys) = form.section("storage")? else {
        return Ok(None);
    };
    let account = keys.text("account_name")?;
    let Some(name) = keys.text("datastore_name")?.or(account) else {
        return Err(wrong(
            keys.at(),
            "`storage` has neither `datastore_name` nor `account_name`",
        ));
    };
    if account.is_none() {
        datastore_of_workspace(&keys, converted);
    } else {
        datastore(&keys, name, converted)?;
        credential(&keys, name, converted)?;
    }
    keys.report_unknown(&mut converted.report, "not a known field of a storage");
    Ok(Some(name.to_owned()))
}

/// Only the workspace knows this datastore, and finds it by its name.
fn datastore_of_workspace(keys: &Section<'_>, converted: &mut Converted) {
    converted.report.mapped(
        "storage.datastore_name",
        keys.place("datastore_name"),
        "the workspace's datastore of that name",
    );
    for key in ["container_name", "sas_token", "account_key"]
        .into_iter()
        .filter(|key| keys.get(key).is_some())
    {
        converted.report.not_needed(
            keys.key(key),
            keys.place(key),
            "without `account_name` the workspace's own datastore is used; nothing was copied",
        );
    }
}

fn put(converted: &mut Converted, name: &str, path: &[&str], node: Node) {
    converted
        .config
        .put(&[&["datastores", name], path].concat(), node);
}

fn datastore(keys: &Section<'_>, name: &str, converted: &mut Converted) -> Result<()> {
    let kind = Node::scalar("azure_blob", keys.at().clone());
    put(converted, name, &["kind"], kind);
    if keys.get("datastore_name").is_some() {
        converted.report.mapped(
            "storage.datastore_name",
            keys.place("datastore_name"),
            format!("datastores.{name}"),
        );
    }
    for (theirs, ours) in [("account_name", "account"), ("container_name", "container")] {
        match keys.text(theirs)? {
            Some(text) => {
                let value = Node::scalar(text, keys.place(theirs).clone());
                put(converted, name, &[ours], value);
                converted.report.mapped(
                    keys.key(theirs),
                    keys.place(theirs),
                    format!("datastores.{name}.{ours}"),
                );
            }
            None => converted.report.warn(format!(
                "`storage.{theirs}` is missing: write `{ours}` under `datastores.{name}`"
            )),
        }
    }
    Ok(())
}

/// A reference to the SAS or the account key, in this order; else the login of the Azure CLI.
fn credential(keys: &Section<'_>, name: &str, converted: &mut Converted) -> Result<()> {
    let (sas, key) = (
        keys.text("sas_token")?.is_some(),
        keys.text("account_key")?.is_some(),
    );
    if !sas && !key {
        let login = Node::scalar("azure_cli", keys.at().clone());
        put(converted, name, &["credential"], login);
        return Ok(());
    }
    let (theirs, ours, part) = if sas {
        (
            "sas_token",
            "sas",
            "the part of `storage.sas_token` after the `?`",
        )
    } else {
        (
            "account_key",
            "account_key",
            "the value of `storage.account_key`",
        )
    };
    let reference = Node::scalar(format!("keyring:{name}"), keys.place(theirs).clone());
    put(converted, name, &["credential", ours], reference);
    converted.report.mapped(
        keys.key(theirs),
        keys.place(theirs),
        format!("datastores.{name}.credential.{ours}, a reference; the value was not copied"),
    );
    converted.report.store(name, part);
    if sas && key {
        converted.report.not_needed(
            "storage.account_key",
            keys.place("account_key"),
            "the SAS is used; the key was not copied",
        );
    }
    Ok(())
}
