//! Submissions of the MSRA Intern's Toolkit, 1.3 and 2.2: JSON files with the fields of a form. Each
//! becomes a job file and the keys of `towline.yaml` that it needs.

use super::section::{Section, wrong};
use super::{
    Converted, Report, ScriptLines, put_script, toolkit_code, toolkit_io, toolkit_job,
    toolkit_storage, toolkit_sweep,
};
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
            "there is no `experiment`: this is not a submission of the toolkit",
        ));
    };
    let name = toolkit_job::names(&experiment, &mut job, &mut converted)?;
    cluster(&form, &mut job, &mut converted)?;
    let store = toolkit_storage::storage(&form, &mut converted)?;
    toolkit_io::io(&form, &mut job, &mut converted)?;
    environment(&form, &mut job, &mut converted)?;
    toolkit_code::code_and_data(
        &form,
        &experiment,
        store.as_deref(),
        &mut job,
        &mut converted,
    )?;
    toolkit_sweep::sweep(&experiment, &mut job, &mut converted)?;
    toolkit_job::script(&experiment, &mut job, &mut converted)?;
    for section in [&experiment, &form] {
        section.report_unknown(&mut converted.report, "not a known field of a submission");
        section.report_unmentioned(&mut converted.report);
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
    // A virtual cluster belongs to others than the workspace: its id does not tell the workspace.
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
    keys.report_unknown(&mut converted.report, "not a known field of a cluster");
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
        entry.report_unknown(report, "no key that names a workspace");
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
            &ScriptLines {
                lines,
                source_name: "`environment.setup_script`",
            },
            &at,
        );
        converted
            .report
            .mapped("environment.setup_script", &at, "environment.setup");
    }
    keys.report_unknown(&mut converted.report, "not a known field of an environment");
    Ok(())
}
