//! Submissions of the MSRA Intern's Toolkit, 1.3 and 2.2: JSON files with a form's fields. They
//! give a job file, and what it needs of `towline.yaml`.

use super::section::{Section, wrong};
use super::{Converted, Lines, Report, put_script, toolkit_job};
use std::path::Path;
use towline_core::Result;
use towline_core::yaml::{Content, Node};

pub(super) fn convert(file: &Path, tree: &Node) -> Result<Converted> {
    let mut converted = Converted::new(&file.display().to_string());
    let mut job = Node::mapping(tree.at.clone());
    let form = Section::new(tree, "")?;
    let Some(experiment) = form.section("experiment")? else {
        return Err(wrong(
            &tree.at,
            "there is no `experiment`: this is no submission of the toolkit",
        ));
    };
    let name = toolkit_job::names(&experiment, &mut job, &mut converted)?;
    cluster(&form, &mut job, &mut converted)?;
    let store = storage(&form, &mut converted)?;
    toolkit_job::io(&form, &mut job, &mut converted)?;
    environment(&form, &mut job, &mut converted)?;
    toolkit_job::code_and_data(
        &form,
        &experiment,
        store.as_deref(),
        &mut job,
        &mut converted,
    )?;
    toolkit_job::sweep(&experiment, &mut job, &mut converted)?;
    toolkit_job::script(&experiment, &mut job, &mut converted)?;
    for section in [&experiment, &form] {
        section.tell_rest(
            &mut converted.report,
            "no field of a submission that is known",
        );
        section.tell_silent(&mut converted.report);
    }
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    converted.jobs.push((name.unwrap_or(stem), job));
    Ok(converted)
}

/// An id of the resource manager: `/subscriptions/S/resourceGroups/G/…/NAME`.
fn parts_of_id(id: &str) -> Option<(&str, &str, &str)> {
    let mut parts = id.strip_prefix("/subscriptions/")?.split('/');
    let subscription = parts.next()?;
    parts
        .next()
        .filter(|word| word.eq_ignore_ascii_case("resourceGroups"))?;
    let group = parts.next()?;
    Some((subscription, group, parts.next_back()?))
}

fn cluster(form: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(keys) = form.section("cluster")? else {
        return Ok(());
    };
    let Some(given) = keys.text("virtual_cluster")? else {
        return Err(wrong(keys.at(), "`cluster` has no `virtual_cluster`"));
    };
    let at = keys.place("virtual_cluster").clone();
    let (name, id) = parts_of_id(given).map_or((given, None), |(subscription, group, name)| {
        (name, Some((subscription, group)))
    });
    // ITP is recognised by its name, as the toolkit does.
    let is_itp = name.contains("itp");
    converted.config.put(
        &["clusters", name, "kind"],
        Node::scalar("azureml", at.clone()),
    );
    let ours = if is_itp { "compute" } else { "virtual_cluster" };
    // A virtual cluster is its owners', who lend it: its id says nothing of the workspace.
    converted.config.put(
        &["clusters", name, ours],
        Node::scalar(if is_itp { name } else { given }, at.clone()),
    );
    converted.report.mapped(
        "cluster.virtual_cluster",
        &at,
        format!("cluster, clusters.{name}.{ours}"),
    );
    job.put(&["cluster"], Node::scalar(name, at.clone()));
    if let Some((subscription, group)) = id.filter(|_| is_itp) {
        converted.config.put(
            &["clusters", name, "subscription"],
            Node::scalar(subscription, at.clone()),
        );
        converted.config.put(
            &["clusters", name, "resource_group"],
            Node::scalar(group, at.clone()),
        );
    }
    let found = workspace(&keys, &mut converted.report)?.unwrap_or_default();
    // A workspace is found by its name alone.
    if !found.iter().any(|(key, _)| *key == "workspace") {
        converted.report.warn(format!(
            "the file does not say the workspace: write `workspace` under `clusters.{name}`"
        ));
    }
    for (key, value) in found {
        converted.report.mapped(
            "cluster.workspace",
            keys.place("workspace"),
            format!("clusters.{name}.{key}"),
        );
        converted.config.put(
            &["clusters", name, key],
            Node::scalar(value, keys.place("workspace").clone()),
        );
    }
    toolkit_job::resources(&keys, is_itp, job, converted)?;
    keys.tell_rest(&mut converted.report, "no field of a cluster that is known");
    Ok(())
}

/// A name, an id, or a mapping with the names of the service.
fn workspace(
    keys: &Section<'_>,
    report: &mut Report,
) -> Result<Option<Vec<(&'static str, String)>>> {
    let Some(node) = keys.get("workspace") else {
        return Ok(None);
    };
    if matches!(node.content, Content::Mapping(_)) {
        let entry = Section::new(node, "cluster.workspace")?;
        let mut found = Vec::new();
        for (theirs, ours) in [
            ("name", "workspace"),
            ("workspace_name", "workspace"),
            ("subscription_id", "subscription"),
            ("subscriptionId", "subscription"),
            ("resource_group", "resource_group"),
            ("resourceGroup", "resource_group"),
        ] {
            if let Some(text) = entry.text(theirs)? {
                found.push((ours, text.to_owned()));
            }
        }
        entry.tell_rest(report, "no key that names a workspace");
        return Ok(Some(found));
    }
    let Some(text) = keys.text("workspace")? else {
        return Ok(None);
    };
    Ok(Some(match parts_of_id(text) {
        Some((subscription, group, name)) => {
            vec![
                ("subscription", subscription.to_owned()),
                ("resource_group", group.to_owned()),
                ("workspace", name.to_owned()),
            ]
        }
        None => vec![("workspace", text.to_owned())],
    }))
}

/// `storage` of 1.3: a datastore. Key and SAS stay behind.
fn storage(form: &Section<'_>, converted: &mut Converted) -> Result<Option<String>> {
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
    let name = name.to_owned();
    if account.is_none() {
        // Only the workspace knows it, and finds it by its name.
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
        keys.tell_rest(&mut converted.report, "no field of a storage that is known");
        return Ok(Some(name));
    }
    let mut put = |path: &[&str], node: Node| {
        converted
            .config
            .put(&[&["datastores", name.as_str()], path].concat(), node)
    };
    put(&["kind"], Node::scalar("azure_blob", keys.at().clone()));
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
                put(&[ours], Node::scalar(text, keys.place(theirs).clone()));
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
    let (sas, key) = (
        keys.text("sas_token")?.is_some(),
        keys.text("account_key")?.is_some(),
    );
    let (theirs, ours) = if sas {
        ("sas_token", "sas")
    } else {
        ("account_key", "account_key")
    };
    if sas || key {
        put(
            &["credential", ours],
            Node::scalar(format!("keyring:{name}"), keys.place(theirs).clone()),
        );
        converted.report.mapped(
            keys.key(theirs),
            keys.place(theirs),
            format!("datastores.{name}.credential.{ours}, a reference; the value was not copied"),
        );
        let part = if sas {
            "what stands behind the `?` of `storage.sas_token`"
        } else {
            "the value of `storage.account_key`"
        };
        converted.report.store(&name, part);
        if sas && key {
            converted.report.not_needed(
                "storage.account_key",
                keys.place("account_key"),
                "the SAS is used; the key was not copied",
            );
        }
    } else {
        put(
            &["credential"],
            Node::scalar("azure_cli", keys.at().clone()),
        );
    }
    keys.tell_rest(&mut converted.report, "no field of a storage that is known");
    Ok(Some(name))
}

fn environment(form: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(keys) = form.section("environment")? else {
        return Ok(());
    };
    for key in ["image", "docker_image"] {
        if let Some(image) = keys.text(key)? {
            let at = keys.place(key);
            job.put(&["environment", "image"], Node::scalar(image, at.clone()));
            converted
                .report
                .mapped(keys.key(key), at, "environment.image");
        }
    }
    let lines = keys
        .lines("setup_script")?
        .into_iter()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let lines: Vec<(usize, String)> = lines
        .map(|(index, line)| (index + 1, line.to_owned()))
        .collect();
    if !lines.is_empty() {
        let at = keys.place("setup_script").clone();
        put_script(
            converted,
            job,
            &["environment", "setup"],
            &Lines {
                lines,
                whence: "`environment.setup_script`",
            },
            &at,
        );
        converted
            .report
            .mapped("environment.setup_script", &at, "environment.setup");
    }
    keys.tell_rest(
        &mut converted.report,
        "no field of an environment that is known",
    );
    Ok(())
}
