//! qd's files for Philly: `philly_vc.yaml`, and `multi_philly_vc.yaml`, which only lists clusters.

use super::act::Work;
use super::act_accounts::Accounts;
use super::act_folders::{Folder, put_folder};
use super::section::{Section, text, wrong};
use super::{Converted, Reader};
use std::path::Path;
use towline_core::Result;
use towline_core::yaml::{Content, Node};

/// How a file relates to the other files of its import.
#[derive(Default)]
pub(super) struct Part {
    /// Names of a list of clusters.
    listed: Vec<String>,
    /// The cluster that the file describes in full.
    whole: Option<String>,
}

/// Copies the description in `philly_vc.yaml` to every cluster that `multi_philly_vc.yaml` lists.
pub(super) fn describe_listed_clusters(all: &mut [Converted]) {
    let whole = all.iter().find_map(|converted| {
        let name = converted.philly.whole.clone()?;
        let keys = converted.config.get("clusters")?.get(&name)?.clone();
        Some((converted.report.source.clone(), name, keys))
    });
    let Some((source, name, keys)) = whole else {
        return;
    };
    for Converted {
        config,
        report,
        philly,
        ..
    } in all
        .iter_mut()
        .filter(|converted| converted.philly.whole.is_none())
    {
        for listed in &philly.listed {
            config.put(&["clusters", listed], keys.clone());
        }
        if !philly.listed.is_empty() {
            report.warn(format!(
                "the clusters listed here get virtual cluster, image, launch and folders of \
                    `{name}` in {source}"
            ));
        }
    }
}

/// Whether the keys are those of Philly: a `vc`, or a list of clusters and nothing else.
pub(super) fn is_philly(tree: &Node) -> bool {
    let only_clusters = matches!(&tree.content, Content::Mapping(entries) if entries.len() == 1);
    tree.get("vc").is_some()
        || tree.get("blob_mount_point").is_some()
        || only_clusters && tree.get("clusters").is_some()
}

pub(super) fn convert(
    tree: &Node,
    root: &Path,
    read: Reader<'_>,
    accounts: &mut Accounts,
    converted: &mut Converted,
) -> Result<()> {
    let keys = Section::new(tree, "")?;
    converted
        .report
        .warn("the cluster of kind `philly` is in the configuration, but tow cannot use it yet");
    list_of_clusters(&keys, converted)?;
    let Some(cluster) = keys.text("cluster")? else {
        keys.report_unknown(
            &mut converted.report,
            "there is no `cluster` it could belong to",
        );
        return Ok(());
    };
    converted.philly.whole = Some(cluster.to_owned());
    let mut work = Work {
        root,
        read,
        name: cluster,
        config: &mut converted.config,
        report: &mut converted.report,
    };
    machine_and_image(&keys, &mut work)?;
    folders(&keys, accounts, &mut work)?;
    for (key, why) in [
        ("user_name", "the signed-in user counts"),
        ("password", "a secret: it was not copied"),
    ] {
        if keys.get(key).is_some() {
            work.report.not_mapped(key, keys.place(key), why);
        }
    }
    keys.report_unknown(work.report, "neither qd nor Towline knows this key");
    keys.report_unmentioned(work.report);
    Ok(())
}

/// `clusters`: names alone.
fn list_of_clusters(keys: &Section<'_>, converted: &mut Converted) -> Result<()> {
    if let Some(list) = keys.get("clusters") {
        let Content::Sequence(names) = &list.content else {
            return Err(wrong(&list.at, "`clusters` must be a list of names"));
        };
        for name in names {
            let word = text(name, "clusters")?;
            converted.config.put(
                &["clusters", word, "kind"],
                Node::scalar("philly", name.at.clone()),
            );
            converted
                .report
                .mapped("clusters", &name.at, format!("clusters.{word}"));
            converted.philly.listed.push(word.to_owned());
        }
    }
    Ok(())
}

/// The kind, virtual cluster, launch and image of a cluster.
fn machine_and_image(keys: &Section<'_>, work: &mut Work<'_>) -> Result<()> {
    let at = keys.place("cluster");
    work.put("cluster", at, &["kind"], Node::scalar("philly", at.clone()));
    if let Some(vc) = keys.text("vc")? {
        work.put(
            "vc",
            keys.place("vc"),
            &["virtual_cluster"],
            Node::scalar(vc, keys.place("vc").clone()),
        );
    }
    let word = if keys.flag("multi_process")?.unwrap_or(true) {
        "per_gpu"
    } else {
        "per_node"
    };
    work.put_or_assume(keys, "multi_process", &["job", "launch"], word);
    let Some(docker) = keys.section("docker")? else {
        return Ok(());
    };
    if let Some(image) = docker.text("image")? {
        let at = docker.place("image");
        let whole = docker
            .text("tag")?
            .map_or_else(|| image.to_owned(), |tag| format!("{image}:{tag}"));
        work.put(
            "docker.image",
            at,
            &["job", "environment", "image"],
            Node::scalar(whole, at.clone()),
        );
        work.mapped_too(&docker, "tag", &["job", "environment", "image"]);
    }
    docker.report_unknown(work.report, "neither qd nor Towline knows this key");
    Ok(())
}

/// Folders are paths below a mount point. The mount point tells the account.
fn folders(keys: &Section<'_>, accounts: &mut Accounts, work: &mut Work<'_>) -> Result<()> {
    let mounts = mount_points(keys, work)?;
    let Some(section) = keys.section("config_param")? else {
        return Ok(());
    };
    for (key, value) in section.entries() {
        if value.is_null() {
            work.report.empty(section.key(key), section.key_place(key));
            continue;
        }
        if key == "code_path" {
            work.report.not_needed(
                section.key(key),
                &value.at,
                "a submission takes a snapshot of the code by itself",
            );
            continue;
        }
        let path = text(value, &section.key(key))?;
        let below = |point: &str| {
            path.strip_prefix(point.trim_end_matches('/'))
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = mounts
            .iter()
            .filter_map(|(point, account)| Some((below(point)?, *account)))
            .min_by_key(|(rest, _)| rest.len());
        match (key.strip_suffix("_folder"), found) {
            (Some(folder), Some((rest, account))) => put_folder(
                &Folder {
                    name: folder,
                    account,
                    account_key: "azure_blob_config_file",
                    path: rest,
                    at: &value.at,
                },
                accounts,
                work,
            )?,
            (Some(_), None) => work.report.not_mapped(
                section.key(key),
                &value.at,
                "it lies below no mount point of a blob container",
            ),
            (None, _) => work.report.not_mapped(
                section.key(key),
                &value.at,
                "only `code_path` and `NAME_folder` have a meaning",
            ),
        }
    }
    Ok(())
}

/// The mount points of blob containers, with the account of each.
fn mount_points<'n>(keys: &Section<'n>, work: &mut Work<'_>) -> Result<Vec<(&'n str, &'n Node)>> {
    let mut mounts: Vec<(&'n str, &'n Node)> = Vec::new();
    if let (Some(point), Some(account)) = (
        keys.text("blob_mount_point")?,
        keys.get("azure_blob_config_file"),
    ) {
        mounts.push((point, account));
        report_mount(keys, point, work);
    }
    if let Some(list) = keys.get("blob_mount_info") {
        let Content::Sequence(items) = &list.content else {
            return Err(wrong(&list.at, "`blob_mount_info` must be a list"));
        };
        for item in items {
            let entry = Section::new(item, "blob_mount_info")?;
            let (Some(point), Some(account)) = (
                entry.text("blob_mount_point")?,
                entry.get("azure_blob_config_file"),
            ) else {
                return Err(wrong(
                    &item.at,
                    "`blob_mount_info` needs `blob_mount_point` and `azure_blob_config_file`",
                ));
            };
            if entry.get("blob_fuse_options").is_some() {
                work.report.not_mapped(
                    entry.key("blob_fuse_options"),
                    entry.place("blob_fuse_options"),
                    "write mount options under `io` of the job, where one is wanted",
                );
            }
            mounts.push((point, account));
            report_mount(&entry, point, work);
            entry.report_unknown(work.report, "neither qd nor Towline knows this key");
        }
    }
    Ok(mounts)
}

fn report_mount(keys: &Section<'_>, point: &str, work: &mut Work<'_>) {
    work.report.mapped(
        keys.key("blob_mount_point"),
        keys.place("blob_mount_point"),
        format!("paths below {point} are paths in the container"),
    );
}
