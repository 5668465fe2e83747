//! Opens the store that a configuration describes.

use crate::credential::Lookup;
use crate::data::Data;
use crate::far_folder::FarFolder;
use crate::web::Web;
use crate::{azure, folder, s3};
use std::path::PathBuf;
use std::sync::Arc;
use towline_core::config::{Datastore, StoreKind};
use towline_core::suggest::did_you_mean;
use towline_core::{Error, Result};

/// This environment variable replaces the address of Azure's blob service.
const AZURE_ENDPOINT_VARIABLE: &str = "TOW_AZURE_BLOB_ENDPOINT";

/// Opens the store that is called `name`. No request is sent yet.
pub fn open(name: &str, datastore: &Datastore, lookup: &Lookup<'_>) -> Result<Arc<dyn Data>> {
    let at = format!("datastore `{name}`");
    match &datastore.kind {
        StoreKind::AzureBlob => azure_blob(name, &at, datastore, lookup),
        StoreKind::S3 => s3_bucket(name, &at, datastore, lookup),
        StoreKind::Folder => local_folder(name, &at, datastore, lookup),
        StoreKind::SshFolder => ssh_folder(name, &at, datastore, lookup),
        kind @ (StoreKind::Azureml | StoreKind::Unknown(_)) => Err(unknown_kind(&at, kind)),
    }
}

fn unknown_kind(at: &str, kind: &StoreKind) -> Error {
    let known = StoreKind::CONFIGURABLE;
    let known: Vec<&str> = known.iter().map(StoreKind::word).collect();
    Error::config(format!("{at} is of an unknown kind `{kind}`")).hint(
        did_you_mean(kind.word(), known.iter().copied())
            .unwrap_or_else(|| format!("known: {}", known.join(", "))),
    )
}

fn azure_blob(
    name: &str,
    at: &str,
    datastore: &Datastore,
    lookup: &Lookup<'_>,
) -> Result<Arc<dyn Data>> {
    only(
        at,
        datastore,
        &["account", "container", "path", "endpoint", "credential"],
    )?;
    let place = azure::Place {
        name: name.to_owned(),
        account: need(at, "account", datastore.account.as_ref())?,
        container: need(at, "container", datastore.container.as_ref())?,
        root: root(at, datastore.path.as_deref())?,
        endpoint: datastore
            .endpoint
            .clone()
            .or_else(|| (lookup.variable)(AZURE_ENDPOINT_VARIABLE)),
        access: azure::Access::Credential(lookup.azure(at, datastore.credential.as_ref())?),
    };
    Ok(Arc::new(azure::Azure::new(place, Web::new()?)?))
}

fn s3_bucket(
    name: &str,
    at: &str,
    datastore: &Datastore,
    lookup: &Lookup<'_>,
) -> Result<Arc<dyn Data>> {
    only(
        at,
        datastore,
        &["bucket", "region", "path", "endpoint", "credential"],
    )?;
    let place = s3::Place {
        name: name.to_owned(),
        bucket: need(at, "bucket", datastore.bucket.as_ref())?,
        root: root(at, datastore.path.as_deref())?,
        endpoint: datastore.endpoint.clone(),
        region: datastore.region.clone(),
        credential: lookup.s3(at, datastore.credential.as_ref())?,
    };
    Ok(Arc::new(s3::S3::new(place, Web::new()?)?))
}

fn local_folder(
    name: &str,
    at: &str,
    datastore: &Datastore,
    lookup: &Lookup<'_>,
) -> Result<Arc<dyn Data>> {
    only(at, datastore, &["path"])?;
    let path = need(at, "path", datastore.path.as_ref())?;
    let path = match (path.strip_prefix("~/"), lookup.home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(path),
    };
    if !path.is_absolute() {
        return Err(relative_path(at));
    }
    Ok(Arc::new(folder::Folder::configured(name, &path)?))
}

fn ssh_folder(
    name: &str,
    at: &str,
    datastore: &Datastore,
    lookup: &Lookup<'_>,
) -> Result<Arc<dyn Data>> {
    only(at, datastore, &["host", "ssh_config", "path"])?;
    let host = need(at, "host", datastore.host.as_ref())?;
    let path = need(at, "path", datastore.path.as_ref())?;
    if !path.starts_with('/') && !path.starts_with("~/") {
        return Err(relative_path(at));
    }
    let route = (lookup.reach)(&host, datastore.ssh_config.as_deref())
        .map_err(|error| error.while_doing(at))?;
    // The program on that host begins in the home.
    Ok(Arc::new(FarFolder::new(
        name,
        &host,
        path.strip_prefix("~/").unwrap_or(&path),
        route,
    )))
}

fn relative_path(at: &str) -> Error {
    Error::config(format!("{at}: `path` must begin with `/` or `~/`"))
}

fn need(at: &str, key: &str, value: Option<&String>) -> Result<String> {
    value
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .ok_or_else(|| Error::config(format!("{at} lacks `{key}`")))
}

/// Refuses keys that this kind does not use.
fn only(at: &str, datastore: &Datastore, used: &[&str]) -> Result<()> {
    let given = [
        ("account", datastore.account.is_some()),
        ("container", datastore.container.is_some()),
        ("bucket", datastore.bucket.is_some()),
        ("region", datastore.region.is_some()),
        ("path", datastore.path.is_some()),
        ("endpoint", datastore.endpoint.is_some()),
        ("host", datastore.host.is_some()),
        ("ssh_config", datastore.ssh_config.is_some()),
        ("credential", datastore.credential.is_some()),
    ];
    match given
        .iter()
        .find(|(key, given)| *given && !used.contains(key))
    {
        Some((key, _)) => Err(Error::config(format!(
            "{at}: kind `{}` has no `{key}`",
            datastore.kind
        ))
        .hint(format!("it has {}", used.join(", ")))),
        None => Ok(()),
    }
}

/// The prefix of everything in a container or bucket: empty, or ending in `/`.
fn root(at: &str, path: Option<&str>) -> Result<String> {
    let path = path.unwrap_or_default().trim_matches('/');
    if path.is_empty() {
        return Ok(String::new());
    }
    crate::data::Key::new(path)
        .map_err(|why| Error::config(format!("{at}: `path` cannot be used: {why}")))?;
    Ok(format!("{path}/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::ErrorKind;

    fn try_open(yaml: &str) -> Result<Arc<dyn Data>> {
        let node = towline_core::yaml::parse("test", yaml).expect("YAML");
        let datastore: Datastore = towline_core::yaml::decode(&node).expect("decodes");
        let variable = |name: &str| match name {
            "KEY" => Some("a2V5".to_owned()),
            "SAS" => Some("?sv=1&sp=rl&sig=x".to_owned()),
            _ => None,
        };
        open(
            "s",
            &datastore,
            &Lookup {
                variable: &variable,
                keyring: &|_| None,
                home: None,
                reach: &crate::credential::no_reach,
                notice: &crate::credential::no_notice,
            },
        )
    }

    #[test]
    fn good_ones_open_and_say_where_they_are() {
        for (yaml, place) in [
            (
                "{kind: azure_blob, account: a, container: c, credential: {account_key: env:KEY}}",
                "s (azure_blob a/c)",
            ),
            (
                "{kind: azure_blob, account: a, container: c, credential: {sas: \
                    env:SAS}, endpoint: 'http://127.0.0.1:1/a'}",
                "s (azure_blob a/c)",
            ),
            (
                "{kind: azure_blob, account: a, container: c, credential: azure_cli}",
                "s (azure_blob a/c)",
            ),
            (
                "{kind: s3, bucket: b, credential: {access_key_id: env:KEY, secret_access_key: \
                    env:KEY}}",
                "s (s3 b)",
            ),
            ("{kind: folder, path: /tmp}", "s (folder /tmp)"),
        ] {
            assert_eq!(try_open(yaml).expect(yaml).place(), place);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (yaml, part) in [
            (
                "{kind: azure_bolb, account: a}",
                "did you mean `azure_blob`?",
            ),
            (
                "{kind: gcs, bucket: b}",
                "known: azure_blob, s3, folder, ssh_folder",
            ),
            (
                "{kind: azureml}",
                "datastore `s` is of an unknown kind `azureml`",
            ),
            (
                "{kind: azure_blob, container: c, credential: azure_cli}",
                "lacks `account`",
            ),
            (
                "{kind: azure_blob, account: a, container: c}",
                "no `credential`",
            ),
            (
                "{kind: azure_blob, account: a, container: c, bucket: b, credential: azure_cli}",
                "has no `bucket`",
            ),
            (
                "{kind: azure_blob, account: a, container: c, path: a/../b, credential: azure_cli}",
                "`path`",
            ),
            ("{kind: folder, path: here}", "must begin with"),
            ("{kind: folder}", "lacks `path`"),
            ("{kind: s3, bucket: b, account: a}", "has no `account`"),
        ] {
            let error = try_open(yaml).expect_err(yaml);
            assert_eq!(error.kind(), ErrorKind::Config, "{yaml}");
            assert!(
                format!("{error} {:?}", error.hints()).contains(part),
                "{error} {:?}",
                error.hints()
            );
        }
        let error = try_open("{kind: folder, path: /nowhere/at/all}").expect_err("not mounted");
        assert_eq!(error.kind(), ErrorKind::Unreachable);
    }
}
