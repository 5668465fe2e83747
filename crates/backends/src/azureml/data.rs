//! The data of a job as Azure ML describes it: inputs and outputs on datastores of the workspace.

use super::image::hash;
use super::site::{AzureSite, StoreFacts};
use serde_json::{Map, Value, json};
use towline_core::config::StoreKind;
use towline_core::job::IoMode;
use towline_core::resolve::{CopyPlan, IoPlan, NamedStore, Resolved};
use towline_core::{Error, Result};

/// Inputs and outputs, and the `--at NAME=PLACE` arguments that tell our program where they are.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Data {
    pub inputs: Map<String, Value>,
    pub outputs: Map<String, Value>,
    pub places: Vec<(String, String)>,
}

/// Whether the service mounts or copies this store. If not, our own program does it on the node.
pub(super) fn is_native(store: &NamedStore) -> bool {
    matches!(
        store.datastore.kind,
        StoreKind::AzureBlob | StoreKind::Azureml
    )
}

/// The name of a store in the workspace: the one we registered, or the workspace's own name for
/// that container.
pub(super) fn name_in(site: &AzureSite, store: &NamedStore, stage: &str) -> String {
    let (own, (account, container)) = (store_name(store, stage), place(store));
    if site.store_names.contains(&own) {
        return own;
    }
    site.stores
        .get(&format!("{account}/{container}"))
        .cloned()
        .unwrap_or(own)
}

/// Whether `tow` registered the datastore. Only the user who registered it knows with whose rights.
pub(super) fn is_registered_by_tow(name: &str) -> bool {
    name.strip_prefix("tow_").is_some_and(|rest| {
        rest.rsplit('_').next().is_some_and(|hash| {
            hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    })
}

/// Our name for a store, from its address and the stage that it serves, because each user has their
/// own rights.
pub(super) fn store_name(store: &NamedStore, stage: &str) -> String {
    if store.datastore.kind == StoreKind::Azureml {
        return store.name.clone();
    }
    let (account, container) = place(store);
    let safe: String = store
        .name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(20)
        .collect::<String>()
        .to_ascii_lowercase();
    format!(
        "tow_{safe}_{:08x}",
        hash(&format!("{account}/{container} {stage}")) >> 32
    )
}

/// Account and container.
pub(super) fn place(store: &NamedStore) -> (&str, &str) {
    (
        store.datastore.account.as_deref().unwrap_or_default(),
        store.datastore.container.as_deref().unwrap_or_default(),
    )
}

/// The short form of a URI, because virtual clusters refuse the long one.
pub(super) fn address(store: &str, path: &str) -> String {
    format!(
        "azureml://datastores/{store}/paths/{}",
        path.trim_start_matches('/')
    )
}

fn below(store: &NamedStore, path: &str) -> String {
    let root = store
        .datastore
        .path
        .as_deref()
        .filter(|_| store.datastore.kind != StoreKind::Azureml)
        .unwrap_or_default()
        .trim_matches('/');
    let path = [root, path.trim_matches('/')]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("/");
    if path.is_empty() {
        path
    } else {
        format!("{path}/")
    }
}

/// `names` maps each store to its name in the workspace.
pub(super) fn data(resolved: &Resolved, names: &dyn Fn(&NamedStore) -> String) -> Result<Data> {
    let mut data = Data::default();
    for io in resolved.io.iter().filter(|io| is_native(&io.store)) {
        add(&mut data, io, names)?;
    }
    if let Some(copy) = resolved.copy.as_ref().filter(|copy| is_native(&copy.store)) {
        add_copy(&mut data, copy, names);
    }
    Ok(data)
}

fn add(data: &mut Data, io: &IoPlan, names: &dyn Fn(&NamedStore) -> String) -> Result<()> {
    let key = io.name.replace('-', "_");
    if data.inputs.contains_key(&key) || data.outputs.contains_key(&key) || key.starts_with("tow_")
    {
        return Err(
            Error::config(format!("`io.{}` cannot have that name here", io.name))
                .hint("rename it: Azure ML treats `-` and `_` as equal, and `tow_` is reserved"),
        );
    }
    let uri = address(&names(&io.store), &below(&io.store, &io.path));
    let kind = match io.mode {
        IoMode::Read => {
            let mode = if io.options.iter().any(|option| option == "download") {
                "Download"
            } else {
                "ReadOnlyMount"
            };
            data.inputs.insert(
                key.clone(),
                json!({"jobInputType": "uri_folder", "uri": uri, "mode": mode}),
            );
            "inputs"
        }
        IoMode::Write | IoMode::Mount => {
            let mode = if io.mode == IoMode::Write {
                "Upload"
            } else {
                "ReadWriteMount"
            };
            data.outputs.insert(
                key.clone(),
                json!({"jobOutputType": "uri_folder", "uri": uri, "mode": mode}),
            );
            "outputs"
        }
    };
    data.places
        .push((io.name.clone(), format!("${{{{{kind}.{key}}}}}")));
    Ok(())
}

/// Adds inputs that are copied to local disk before the start, one for each part.
fn add_copy(data: &mut Data, copy: &CopyPlan, names: &dyn Fn(&NamedStore) -> String) {
    let whole = [String::new()];
    let parts = if copy.subdirs.is_empty() {
        &whole[..]
    } else {
        &copy.subdirs[..]
    };
    for (number, part) in parts.iter().enumerate() {
        let key = format!("tow_copy_{number}");
        let path = below(&copy.store, &format!("{}/{part}", copy.path));
        data.inputs.insert(key.clone(), json!({"jobInputType": "uri_folder", "uri": address(&names(&copy.store), &path), "mode": "Download"}));
        data.places
            .push((format!("copy/{number}"), format!("${{{{inputs.{key}}}}}")));
    }
}

/// The document of a datastore, with its credential. There is none if the job's identity has
/// access.
pub(super) fn document(
    store: &NamedStore,
    usual: &StoreFacts,
    sas: Option<&towline_core::redact::Secret>,
) -> Value {
    let (account, container) = place(store);
    let credentials = match sas {
        None => json!({"credentialsType": "None"}),
        Some(sas) => {
            json!({"credentialsType": "Sas", "secrets": {"secretsType": "Sas", "sasToken": sas.expose()}})
        }
    };
    // In other clouds the host name ends differently. The workspace's own store shows how.
    let own = store
        .datastore
        .endpoint
        .as_deref()
        .unwrap_or(&usual.endpoint);
    let suffix = own
        .split_once(".blob.")
        .map_or("core.windows.net", |(_, suffix)| {
            suffix.trim_end_matches('/')
        });
    let protocol = own
        .split_once("://")
        .map_or("https", |(protocol, _)| protocol);
    json!({"properties": {
        "datastoreType": "AzureBlob", "accountName": account, "containerName": container, "endpoint": suffix, "protocol": protocol,
        "credentials": credentials, "description": "registered by tow", "tags": {"tow": store.name},
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::config::Datastore;

    fn store(kind: StoreKind) -> NamedStore {
        let datastore = Datastore {
            kind,
            account: Some("acct".into()),
            container: Some("data".into()),
            path: Some("root".into()),
            ..Datastore::default()
        };
        NamedStore {
            name: "research".into(),
            datastore,
        }
    }

    #[test]
    fn modes_are_those_of_the_service() {
        let io = |name: &str, mode, options: &[&str]| IoPlan {
            name: name.into(),
            store: store(StoreKind::AzureBlob),
            path: "alice/work".into(),
            mode,
            options: options.iter().map(|text| (*text).to_owned()).collect(),
        };
        let mut data = Data::default();
        let names = |store: &NamedStore| store_name(store, "towline/me");
        for io in [
            io("in", IoMode::Read, &[]),
            io("local", IoMode::Read, &["download"]),
            io("out", IoMode::Write, &[]),
            io("blob-mnt", IoMode::Mount, &[]),
        ] {
            add(&mut data, &io, &names).expect("fine");
        }
        let modes = |map: &Map<String, Value>| {
            map.iter()
                .map(|(name, value)| format!("{name}={}", value["mode"].as_str().unwrap_or("")))
                .collect::<Vec<_>>()
        };
        assert_eq!(modes(&data.inputs), ["in=ReadOnlyMount", "local=Download"]);
        assert_eq!(
            modes(&data.outputs),
            ["out=Upload", "blob_mnt=ReadWriteMount"]
        );
        assert_eq!(
            data.places[3],
            ("blob-mnt".to_owned(), "${{outputs.blob_mnt}}".to_owned())
        );
        assert!(
            data.inputs["in"]["uri"]
                .as_str()
                .expect("a text")
                .ends_with("/paths/root/alice/work/")
        );
        assert!(add(&mut data, &io("blob_mnt", IoMode::Mount, &[]), &names).is_err());
    }

    #[test]
    fn a_store_has_one_name_wherever_it_is_registered() {
        let mine = store_name(&store(StoreKind::AzureBlob), "towline/alice");
        assert_eq!(
            mine,
            store_name(&store(StoreKind::AzureBlob), "towline/alice")
        );
        assert_ne!(
            mine,
            store_name(&store(StoreKind::AzureBlob), "towline/bob"),
            "each has rights of their own"
        );
        assert_eq!(
            store_name(&store(StoreKind::Azureml), "towline/alice"),
            "research"
        );
        assert!(
            mine.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        );
        assert!(
            is_registered_by_tow(&mine)
                && !is_registered_by_tow("tow_research")
                && !is_registered_by_tow("research_0123abcd")
        );
    }
}
