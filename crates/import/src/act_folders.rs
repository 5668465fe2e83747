//! The folders of ACT's clusters: `config_param` of each file.

use super::act::Work;
use super::act_accounts::Accounts;
use super::section::{Section, text, wrong};
use towline_core::Result;
use towline_core::yaml::{Content, Node, Position};

/// `config_param`: the place of the code, and one `X_folder` per folder.
pub(super) fn folders(
    keys: &Section<'_>,
    accounts: &mut Accounts,
    work: &mut Work<'_>,
) -> Result<()> {
    let default_account = keys.get("azure_blob_config_file");
    let section = keys.section("config_param")?;
    for (key, value) in section.iter().flat_map(Section::entries) {
        let full = format!("config_param.{key}");
        if value.is_null() {
            work.report.empty(full, &value.at);
            continue;
        }
        if key == "code_path" {
            work.report.not_needed(
                full,
                &value.at,
                "a submission takes a snapshot of the code by itself",
            );
            continue;
        }
        let Some(folder) = key
            .strip_suffix("_folder")
            .filter(|folder| !folder.is_empty())
        else {
            work.report.not_mapped(
                full,
                &value.at,
                "only `code_path` and `NAME_folder` have a meaning",
            );
            continue;
        };
        if matches!(value.content, Content::Mapping(_)) {
            folder_of(
                &Section::new(value, &full)?,
                default_account,
                folder,
                accounts,
                work,
            )?;
            continue;
        }
        let Some(account) = default_account else {
            return Err(wrong(
                &value.at,
                format!(
                    "`{full}` is a path alone, and there is no `azure_blob_config_file` it belongs \
                        to"
                ),
            ));
        };
        let folder = Folder {
            name: folder,
            account,
            account_key: "azure_blob_config_file",
            path: text(value, &full)?,
            at: &value.at,
        };
        put_folder(&folder, accounts, work)?;
    }
    Ok(())
}

/// A folder with an account or a kind of storage of its own.
fn folder_of(
    entry: &Section<'_>,
    default_account: Option<&Node>,
    folder: &str,
    accounts: &mut Accounts,
    work: &mut Work<'_>,
) -> Result<()> {
    if entry
        .text("storage_type")?
        .is_some_and(|kind| kind != "blob")
    {
        work.report.not_mapped(
            entry.key("storage_type"),
            entry.place("storage_type"),
            "only blob containers can be reached; a file share cannot",
        );
        for (key, value) in entry.rest() {
            work.report
                .not_mapped(entry.key(key), &value.at, "it belongs to a file share");
        }
        return Ok(());
    }
    let own = entry
        .get("azure_blob_config_file")
        .map(|own| (own, entry.key("azure_blob_config_file")));
    let Some((account, account_key)) = own
        .or_else(|| default_account.map(|account| (account, "azure_blob_config_file".to_owned())))
    else {
        return Err(wrong(
            entry.at(),
            format!(
                "`{}` has no `azure_blob_config_file`",
                entry.key("").trim_end_matches('.')
            ),
        ));
    };
    let path = entry.text("path")?.unwrap_or_default();
    let folder = Folder {
        name: folder,
        account,
        account_key: &account_key,
        path,
        at: entry
            .get("path")
            .map_or_else(|| entry.at(), |path| &path.at),
    };
    put_folder(&folder, accounts, work)?;
    for (key, why) in [
        (
            "datastore_name",
            "stores are reached by account and container",
        ),
        (
            "blob_cache_timeout",
            "write mount options under `io` of the job, where one is wanted",
        ),
        (
            "submit_with_url",
            "data is read with the store's own credential",
        ),
    ] {
        if entry.get(key).is_some() {
            work.report
                .not_needed(entry.key(key), entry.place(key), why);
        }
    }
    entry.report_unknown(work.report, "neither ACT nor Towline knows this key");
    Ok(())
}

/// A folder in a storage account.
pub(super) struct Folder<'f> {
    pub(super) name: &'f str,
    /// The value that names the account file, and its key.
    pub(super) account: &'f Node,
    pub(super) account_key: &'f str,
    pub(super) path: &'f str,
    /// The place of `path` in its file.
    pub(super) at: &'f Position,
}

pub(super) fn put_folder(
    folder: &Folder<'_>,
    accounts: &mut Accounts,
    work: &mut Work<'_>,
) -> Result<()> {
    let store = accounts.datastore(folder.account, folder.account_key, work)?;
    work.set(
        &["folders", folder.name, "datastore"],
        Node::scalar(store, folder.account.at.clone()),
    );
    let path = Node::scalar(folder.path.trim_matches('/'), folder.at.clone());
    work.put(
        &format!("config_param.{}_folder", folder.name),
        folder.at,
        &["folders", folder.name, "path"],
        path,
    );
    Ok(())
}

/// Copies the folders of one cluster to the folders of all clusters. A folder that exists there is
/// kept.
pub fn share_folders(config: &mut Node, cluster: &str) {
    let own = config
        .get("clusters")
        .and_then(|clusters| clusters.get(cluster))
        .and_then(|cluster| cluster.get("folders"))
        .cloned();
    if let Some(mut folders) = own {
        if let Some(known) = config.get("folders").cloned() {
            folders.overlay(known);
        }
        config.put(&["folders"], folders);
    }
}

/// Lists, for each cluster, the shared folders that it does not have: a file of ACT names all folders
/// of its cluster.
pub fn exclude_missing_folders(config: &mut Node) {
    let shared = super::merge::names(config, "folders");
    for cluster in super::merge::names(config, "clusters") {
        let Some(entry) = config
            .get("clusters")
            .and_then(|clusters| clusters.get(&cluster))
            .cloned()
        else {
            continue;
        };
        let own = super::merge::names(&entry, "folders");
        let missing: Vec<Node> = shared
            .iter()
            .filter(|name| !own.contains(name))
            .map(|name| Node::scalar(name, entry.at.clone()))
            .collect();
        if !missing.is_empty() {
            config.put(
                &["clusters", &cluster, "without_folders"],
                Node::sequence(missing, entry.at),
            );
        }
    }
}
