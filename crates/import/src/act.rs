//! `aux_data/aml/NAME.yaml` of ACT and qd: a cluster with its folders and the defaults of its jobs.

use super::act_file::{self, named, root_of};
use super::section::{Section, wrong};
use super::{
    Converted, Reader, Report, act_defaults, act_folders, act_wrong_file, philly, read_tree,
};
pub use crate::act_accounts::Accounts;
use std::path::Path;
use towline_core::Result;
use towline_core::yaml::{Content, Node, Position, Warning};

/// Keys that Towline does not need, with the reason for the report.
const KEYS_WITHOUT_EFFECT: [(&str, &str); 6] = [
    ("use_cli_auth", "the Azure CLI's login is what is used"),
    ("with_log", "`tow query` brings the logs"),
    ("source_directory", "ACT does not use it either"),
    ("entry_script", "Towline brings its own runner"),
    (
        "datastore_name",
        "stores are reached by account and container",
    ),
    ("unique_gjd_cluster", "a switch of ACT's own code"),
];
/// Keys for which Towline has no counterpart, with the reason for the report.
const KEYS_WITHOUT_COUNTERPART: [(&str, &str); 7] = [
    (
        "sleep_if_succeed",
        "nodes are kept on purpose by `tow alloc`, or after a failure by `hold_on_failure`",
    ),
    (
        "compile_args",
        "write the compilation as a line of `environment.setup`",
    ),
    ("elastic_num_gpu", "a run keeps its size"),
    (
        "aks_compute_global_dispatch",
        "name several clusters in the job instead: `cluster: [a, b]`",
    ),
    (
        "aks_compute_global_dispatch_arg",
        "name several clusters in the job instead: `cluster: [a, b]`",
    ),
    ("is_ssh_scheduler", "a scheduler that is not public"),
    ("password", "a secret: it was not copied"),
];

/// One file of ACT: where it is read from, and where its values are put.
pub(super) struct Work<'w> {
    pub(super) root: &'w Path,
    pub(super) read: Reader<'w>,
    pub(super) name: &'w str,
    pub(super) config: &'w mut Node,
    pub(super) report: &'w mut Report,
}

impl Work<'_> {
    /// Puts a value below `clusters.NAME` and reports it.
    pub(super) fn put(&mut self, from: &str, at: &Position, path: &[&str], value: Node) {
        self.report.mapped(
            from,
            at,
            format!("clusters.{}.{}", self.name, path.join(".")),
        );
        self.set(path, value);
    }

    /// The same for a key that may be missing. The report lists the other tool's default as assumed.
    pub(super) fn put_or_assume(
        &mut self,
        keys: &Section<'_>,
        key: &str,
        path: &[&str],
        word: &str,
    ) {
        let at = keys.place(key);
        if keys.get(key).is_some() {
            return self.put(&keys.key(key), at, path, Node::scalar(word, at.clone()));
        }
        self.report.assumed(
            keys.key(key),
            format_args!("clusters.{}.{}: {word}", self.name, path.join(".")),
        );
        self.set(path, Node::scalar(word, at.clone()));
    }

    /// Reports that a key is part of a value that is there already.
    pub(super) fn mapped_too(&mut self, keys: &Section<'_>, key: &str, path: &[&str]) {
        if keys.get(key).is_some() {
            self.report.mapped(
                keys.key(key),
                keys.place(key),
                format!("clusters.{}.{}", self.name, path.join(".")),
            );
        }
    }

    pub(super) fn set(&mut self, path: &[&str], value: Node) {
        self.config
            .put(&[&["clusters", self.name], path].concat(), value);
    }
}

/// Converts one file for `tow import`. Its keys tell which of qd's files it is.
pub(super) fn convert(file: &Path, read: Reader<'_>, accounts: &mut Accounts) -> Result<Converted> {
    let root = root_of(file);
    let tree = act_file::read(file, read)?;
    let mut converted = Converted::new(&file.display().to_string());
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    if philly::is_philly(&tree) {
        philly::convert(&tree, root, read, accounts, &mut converted)?;
    } else {
        cluster(&tree, &stem, root, read, accounts, &mut converted)?;
        act_folders::share_folders(&mut converted.config, &stem);
    }
    Ok(converted)
}

/// The cluster of a file that is used in place, with everything that `_base_` adds, and warnings about
/// unknown keys.
pub fn read_in_place(
    name: &str,
    file: &Path,
    root: &Path,
    read: Reader<'_>,
    accounts: &mut Accounts,
) -> Result<(Node, Vec<Warning>)> {
    let tree = act_file::read(file, read)?;
    let mut converted = Converted::new(&file.display().to_string());
    cluster(&tree, name, root, read, accounts, &mut converted)?;
    Ok((converted.config, converted.report.warnings_in_place))
}

fn cluster(
    tree: &Node,
    name: &str,
    root: &Path,
    read: Reader<'_>,
    accounts: &mut Accounts,
    converted: &mut Converted,
) -> Result<()> {
    let keys = Section::new(tree, "")?;
    act_wrong_file::refuse_other_files(&keys)?;
    let mut work = Work {
        root,
        read,
        name,
        config: &mut converted.config,
        report: &mut converted.report,
    };
    work.set(&["kind"], Node::scalar("azureml", tree.at.clone()));
    let platform = platform(&keys)?;
    workspace(&keys, &mut work)?;
    target(&keys, platform, &mut work)?;
    act_defaults::put(&keys, platform, &mut work)?;
    act_folders::folders(&keys, accounts, &mut work)?;
    report_unused(&keys, work.report);
    act_wrong_file::refuse_unknown(&keys)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    Aml,
    Itp,
    Singularity,
}

fn platform(keys: &Section<'_>) -> Result<Platform> {
    let old = keys.flag("aks_compute")?.unwrap_or(false);
    match keys.text("platform")? {
        None if old => Ok(Platform::Itp),
        None | Some("aml") => Ok(Platform::Aml),
        Some("itp") => Ok(Platform::Itp),
        Some("singularity") => Ok(Platform::Singularity),
        Some(other) => Err(wrong(
            keys.place("platform"),
            format!("`platform` is aml, itp or singularity, not `{other}`"),
        )),
    }
}

/// `aml_config`: a JSON file, or the same keys in place.
fn workspace(keys: &Section<'_>, work: &mut Work<'_>) -> Result<()> {
    let Some(value) = keys.get("aml_config") else {
        work.report.warn(format!(
            "there is no `aml_config`, which names the workspace: write \
            `workspace` under `clusters.{}`",
            work.name
        ));
        return Ok(());
    };
    let tree = match value.content {
        Content::Mapping(_) => value.clone(),
        _ => read_tree(
            &named(value, "aml_config", work.root, work.read)?,
            work.read,
        )?,
    };
    let names = Section::new(&tree, "aml_config")?;
    if names.text("workspace_name")?.is_none() {
        work.report.warn(format!(
            "{}: there is no `workspace_name`: write `workspace` under `clusters.{}`",
            tree.at, work.name
        ));
    }
    for (theirs, ours) in [
        ("subscription_id", "subscription"),
        ("resource_group", "resource_group"),
        ("workspace_name", "workspace"),
    ] {
        if let Some(text) = names.text(theirs)? {
            let at = names.place(theirs).clone();
            work.put(
                &names.key(theirs),
                &at,
                &[ours],
                Node::scalar(text, at.clone()),
            );
        }
    }
    if !matches!(value.content, Content::Mapping(_)) {
        work.report.mapped(
            "aml_config",
            &value.at,
            format!("clusters.{}, what the file says", work.name),
        );
    }
    for (other, value) in names.rest() {
        work.report
            .not_mapped(names.key(other), &value.at, "no key that names a workspace");
    }
    Ok(())
}

fn target(keys: &Section<'_>, platform: Platform, work: &mut Work<'_>) -> Result<()> {
    let ours = if platform == Platform::Singularity {
        "virtual_cluster"
    } else {
        "compute"
    };
    match keys.text("compute_target")? {
        Some(target) => {
            let at = keys.place("compute_target");
            work.put(
                "compute_target",
                at,
                &[ours],
                Node::scalar(target, at.clone()),
            );
        }
        None => work.report.warn(format!(
            "there is no `compute_target`: write `clusters.{}.{ours}`",
            work.name
        )),
    }
    let what = match platform {
        Platform::Aml => "a compute of Azure ML",
        Platform::Itp => "a compute of ITP",
        Platform::Singularity => "a virtual cluster of Singularity",
    };
    for key in ["platform", "aks_compute"] {
        if keys.get(key).is_some() {
            work.report.mapped(
                key,
                keys.place(key),
                format!("the kind of target, {what}: clusters.{}.{ours}", work.name),
            );
        }
    }
    Ok(())
}

fn report_unused(keys: &Section<'_>, report: &mut Report) {
    for (lists, needed) in [
        (KEYS_WITHOUT_EFFECT.as_slice(), false),
        (KEYS_WITHOUT_COUNTERPART.as_slice(), true),
    ] {
        for (key, why) in lists {
            match keys.get(key) {
                Some(value) if needed => report.not_mapped(*key, &value.at, *why),
                Some(value) => report.not_needed(*key, &value.at, *why),
                None => {}
            }
        }
    }
    keys.report_unknown(report, "neither ACT nor Towline knows this key");
    keys.report_unmentioned(report);
}
