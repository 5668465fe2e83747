//! Several files, one configuration. Clusters and datastores that have the same name and differ are
//! kept apart: the later one gets a new name, and its file uses the new name everywhere.

use super::yaml_text::value;
use super::{Converted, Report};
use towline_core::yaml::{self, Content, Node};

/// Sections whose entries are used by name. Datastores come first, because clusters name them.
pub(super) const NAMED_SECTIONS: [&str; 2] = ["datastores", "clusters"];

/// A key that both have, with different values.
pub(super) struct Conflict<'n> {
    pub(super) key: String,
    pub(super) existing: &'n Node,
    pub(super) new: &'n Node,
}

/// The first key below `key` that both have with different values.
pub(super) fn conflict<'n>(existing: &'n Node, new: &'n Node, key: &str) -> Option<Conflict<'n>> {
    match (&existing.content, &new.content) {
        _ if existing.is_null() || new.is_null() => None,
        // A credential is compared as a whole: a key and a SAS cannot be merged.
        (Content::Mapping(_), Content::Mapping(entries)) if !key.ends_with(".credential") => {
            entries.iter().find_map(|(name, new)| {
                let name = name.text()?;
                conflict(existing.get(name)?, new, &format!("{key}.{name}"))
            })
        }
        (Content::Scalar { text, .. }, Content::Scalar { text: other, .. }) if text == other => {
            None
        }
        _ if value(existing) == value(new) => None,
        _ => Some(Conflict {
            key: key.to_owned(),
            existing,
            new,
        }),
    }
}

/// A value as a message shows it.
pub(super) fn shown(node: &Node) -> String {
    node.text()
        .map_or_else(|| yaml::write_inline(&value(node)), str::to_owned)
}

/// The keys of a section.
pub(super) fn names(tree: &Node, key: &str) -> Vec<String> {
    match tree.get(key).map(|node| &node.content) {
        Some(Content::Mapping(entries)) => entries
            .iter()
            .filter_map(|(name, _)| name.text().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

/// Merges the result of one more file into the configuration.
pub(super) fn add(config: &mut Node, converted: &mut Converted) {
    for kind in NAMED_SECTIONS {
        for name in names(&converted.config, kind) {
            let Some(why) = clash(config, &converted.config, kind, &name) else {
                continue;
            };
            let own = free_name(config, &converted.config, kind, &name);
            rename(converted, kind, &name, &own);
            converted.report.warn(format!(
                "`{kind}.{name}` of this file is `{kind}.{own}`: {why}"
            ));
        }
    }
    keep_first(config, converted);
    config.overlay(converted.config.clone());
}

/// The first difference between two entries of one name.
fn clash(config: &Node, new: &Node, kind: &str, name: &str) -> Option<String> {
    let (existing, new) = (config.get(kind)?.get(name)?, new.get(kind)?.get(name)?);
    let found = conflict(existing, new, &format!("{kind}.{name}"))?;
    Some(format!(
        "`{}` is `{}` in {}, and `{}` here",
        found.key,
        shown(found.existing),
        found.existing.at,
        shown(found.new)
    ))
}

/// `NAME-2`, `NAME-3`…: the first name that is free, or whose entry is equal.
fn free_name(config: &Node, new: &Node, kind: &str, name: &str) -> String {
    let Some(wanted) = new.get(kind).and_then(|all| all.get(name)) else {
        return name.to_owned();
    };
    let is_free = |own: &str| {
        let known = new.get(kind).and_then(|all| all.get(own)).is_some();
        let existing = config.get(kind).and_then(|all| all.get(own));
        let is_same = |existing: &Node| {
            let mut renamed = wanted.clone();
            rename_credential(&mut renamed, name, own);
            conflict(existing, &renamed, "").is_none()
        };
        !known && existing.is_none_or(is_same)
    };
    let mut number = 2;
    loop {
        let own = format!("{name}-{number}");
        if is_free(&own) {
            return own;
        }
        number += 1;
    }
}

/// `sync` and a folder are whole: the first file's counts. Clusters still have the folders of each;
/// a `sync` that is left out is reported.
fn keep_first(config: &Node, converted: &mut Converted) {
    if let (Some(first), Some(other)) = (config.get("sync"), converted.config.get("sync")) {
        if value(first) != value(other) {
            converted.report.warn(format!(
                "`sync` is that of {}; this file's is left out",
                first.at.source
            ));
        }
        remove(&mut converted.config, "sync");
    }
    let known = names(config, "folders");
    if let Some(folders) = child(&mut converted.config, "folders") {
        for name in &known {
            remove(folders, name);
        }
    }
}

/// Removes a key from a mapping.
pub(super) fn remove(node: &mut Node, key: &str) {
    if let Content::Mapping(entries) = &mut node.content {
        entries.retain(|(known, _)| known.text() != Some(key));
    }
}

pub(super) fn child<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    match &mut node.content {
        Content::Mapping(entries) => entries
            .iter_mut()
            .find(|(known, _)| known.text() == Some(key))
            .map(|(_, value)| value),
        _ => None,
    }
}

fn rename(converted: &mut Converted, kind: &str, old: &str, new: &str) {
    let key = if kind == "datastores" {
        "datastore"
    } else {
        "cluster"
    };
    if let Some(Content::Mapping(entries)) =
        child(&mut converted.config, kind).map(|node| &mut node.content)
    {
        for (name, entry) in entries
            .iter_mut()
            .filter(|(name, _)| name.text() == Some(old))
        {
            set(name, old, new);
            rename_credential(entry, old, new);
        }
    }
    rename_values(&mut converted.config, key, old, new);
    if key == "cluster"
        && let Some(node) = child(&mut converted.config, "default_cluster")
    {
        set(node, old, new);
    }
    for (_, job) in &mut converted.jobs {
        rename_values(job, key, old, new);
    }
    rename_in_report(&mut converted.report, kind, old, new);
}

fn set(node: &mut Node, old: &str, new: &str) {
    if let Content::Scalar { text, .. } = &mut node.content
        && text == old
    {
        new.clone_into(text);
    }
}

/// Renames the keyring entry of a datastore's credential, which has the datastore's name.
fn rename_credential(datastore: &mut Node, old: &str, new: &str) {
    if let Some(Content::Mapping(entries)) =
        child(datastore, "credential").map(|node| &mut node.content)
    {
        for (_, value) in entries {
            set(value, &format!("keyring:{old}"), &format!("keyring:{new}"));
        }
    }
}

/// Renames every `datastore: OLD` or `cluster: OLD`, except among variables.
fn rename_values(node: &mut Node, key: &str, old: &str, new: &str) {
    let Content::Mapping(entries) = &mut node.content else {
        return;
    };
    for (name, value) in entries
        .iter_mut()
        .filter(|(name, _)| !matches!(name.text(), Some("env" | "sweep")))
    {
        match &mut value.content {
            Content::Scalar { .. } if name.text() == Some(key) => set(value, old, new),
            Content::Sequence(items) if name.text() == Some(key) => {
                for item in items {
                    set(item, old, new);
                }
            }
            _ => rename_values(value, key, old, new),
        }
    }
}

fn rename_in_report(report: &mut Report, kind: &str, old: &str, new: &str) {
    let (from, to) = (format!("{kind}.{old}"), format!("{kind}.{new}"));
    for line in [
        &mut report.mapped,
        &mut report.assumed,
        &mut report.not_needed,
        &mut report.not_mapped,
    ]
    .into_iter()
    .flatten()
    {
        line.says = replace_name(&line.says, &from, &to);
    }
    for warning in &mut report.warnings {
        *warning = replace_name(warning, &from, &to);
    }
    if kind == "datastores" {
        let (from, to) = (Report::store_words(old), Report::store_words(new));
        report
            .commands
            .iter_mut()
            .for_each(|command| *command = command.replacen(&from, &to, 1));
    }
}

/// `datastores.research` but not `datastores.research2`.
fn replace_name(text: &str, from: &str, to: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let is_whole =
            !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        made += before;
        made += if is_whole { to } else { from };
        rest = after;
    }
    made + rest
}
