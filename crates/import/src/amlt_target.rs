//! The `target` of an amlt file, as a cluster.

use super::Converted;
use super::section::Section;
use towline_core::Result;
use towline_core::yaml::Node;

pub(super) fn target(form: &Section<'_>, base: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(keys) = form.section("target")? else {
        return Ok(());
    };
    let service = keys.text("service")?.unwrap_or("aml").to_ascii_lowercase();
    let at = keys.place("service");
    let ours = match service.as_str() {
        "sing" | "singularity" => "virtual_cluster",
        "aml" => "compute",
        "local" => {
            base.put(&["cluster"], Node::scalar("local", at.clone()));
            converted
                .report
                .mapped("target.service", at, "cluster: local");
            return Ok(());
        }
        other => {
            converted.report.not_mapped(
                "target",
                at,
                format!(
                    "`{other}` is a service that Towline \
                does not reach: name a cluster with `cluster:` or `-c`"
                ),
            );
            return Ok(());
        }
    };
    let Some(name) = keys
        .text("name")?
        .or(keys.text("vc")?)
        .or(keys.text("cluster")?)
    else {
        converted
            .report
            .warn("`target` has no `name`: name a cluster with `cluster:` or `-c`");
        return Ok(());
    };
    put_target(&keys, name, "service", ("kind", "azureml"), converted);
    put_target(&keys, name, "name", (ours, name), converted);
    target_workspace(&keys, name, ours == "virtual_cluster", converted)?;
    for key in ["group_policy_name", "queue", "vc", "cluster"]
        .into_iter()
        .filter(|key| keys.get(key).is_some())
    {
        converted.report.not_needed(
            keys.key(key),
            keys.place(key),
            "the cluster's name is enough",
        );
    }
    base.put(&["cluster"], Node::scalar(name, at.clone()));
    keys.report_unknown(&mut converted.report, "not a known key of a target");
    Ok(())
}

/// The workspace of a target, with its subscription and resource group.
fn target_workspace(
    keys: &Section<'_>,
    name: &str,
    is_virtual: bool,
    converted: &mut Converted,
) -> Result<()> {
    // A virtual cluster may lie in another subscription than the workspace of its jobs.
    for (own, of_workspace, key) in [
        (
            "subscription_id",
            "workspace_subscription_id",
            "subscription",
        ),
        (
            "resource_group",
            "workspace_resource_group",
            "resource_group",
        ),
    ] {
        match (keys.text(of_workspace)?, keys.text(own)?) {
            (Some(value), _) => put_target(keys, name, of_workspace, (key, value), converted),
            (None, Some(value)) if !is_virtual => {
                put_target(keys, name, own, (key, value), converted);
            }
            (None, Some(_)) => converted.report.not_needed(
                keys.key(own),
                keys.place(own),
                "of the virtual cluster, which is found by its name",
            ),
            (None, None) => {}
        }
    }
    match keys.text("workspace_name")? {
        Some(value) => put_target(
            keys,
            name,
            "workspace_name",
            ("workspace", value),
            converted,
        ),
        None => converted.report.warn(format!(
            "the file does not say the workspace: write `workspace` under `clusters.{name}`"
        )),
    }
    Ok(())
}

/// Puts a value below `clusters.NAME` and reports the key that it comes from.
fn put_target(
    keys: &Section<'_>,
    name: &str,
    from: &str,
    (key, value): (&str, &str),
    converted: &mut Converted,
) {
    converted.config.put(
        &["clusters", name, key],
        Node::scalar(value, keys.place(from).clone()),
    );
    converted.report.mapped(
        keys.key(from),
        keys.place(from),
        format!("clusters.{name}.{key}"),
    );
}
