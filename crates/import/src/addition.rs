//! An import into a folder that has a `towline.yaml`: missing keys are added, present ones are kept
//! as written, and contradictions are refused.

use super::merge::{NAMED_SECTIONS, child, conflict, names, remove, shown};
use super::yaml_text::{self, value};
use super::{NewFile, Placement, Report, insert};
use towline_core::config::PROJECT_FILE;
use towline_core::yaml::{self, Content, Node, Position};
use towline_core::{Error, Result};

const FORCE_HINT: &str =
    "`--force` writes it anew, without its comments; the old one is kept as towline.yaml.old";

/// The file with the new keys, or `None` if it has all of them.
pub(super) fn onto(
    existing_text: &str,
    mut new: Node,
    title: &str,
    force: bool,
    reports: &mut [Report],
) -> Result<Option<NewFile>> {
    let existing = yaml::parse(PROJECT_FILE, existing_text)?;
    if !matches!(existing.content, Content::Mapping(_)) {
        return Err(Error::config(format!(
            "{}: expected a mapping of keys to values",
            existing.at
        )));
    }
    let mut expected = existing.clone();
    if force {
        replace_whole(&mut expected, &new);
    } else {
        refuse_conflicts(&existing, &new)?;
        remove_kept(&existing, &mut new, reports);
    }
    expected.overlay(new.clone());
    if value(&expected) == value(&existing) {
        return Ok(None);
    }
    let name = PROJECT_FILE.to_owned();
    if force {
        return Ok(Some(NewFile {
            name,
            text: yaml_text::file(title, &expected),
            placement: Placement::Replaced,
        }));
    }
    let text = insert::insert(existing_text, &existing, &new);
    let reads = yaml::parse(PROJECT_FILE, &text).is_ok_and(|read| value(&read) == value(&expected));
    if !reads {
        return Err(Error::unsupported(format!(
            "tow cannot add keys to {PROJECT_FILE} as it is written; nothing was written"
        ))
        .hint(FORCE_HINT));
    }
    Ok(Some(NewFile {
        name,
        text,
        placement: Placement::Added,
    }))
}

/// Refuses clusters and datastores of one name that differ.
fn refuse_conflicts(existing: &Node, new: &Node) -> Result<()> {
    let found = NAMED_SECTIONS
        .iter()
        .find_map(|kind| conflict(existing.get(kind)?, new.get(kind)?, kind));
    let Some(found) = found else { return Ok(()) };
    let (old, new) = (shown(found.existing), shown(found.new));
    Err(Error::conflict(format!(
        "{}: `{}` is `{old}` there, and `{new}` in {}; nothing was written",
        found.existing.at, found.key, found.new.at
    ))
    .hint("`--force` takes the new values; the old file is kept as towline.yaml.old")
    .hint("or import both files in one command: then the second one gets a name of its own"))
}

/// Removes from `new` the keys that are kept as they are in the file.
fn remove_kept(existing: &Node, new: &mut Node, reports: &mut [Report]) {
    if !names(existing, "clusters").is_empty() {
        remove(new, "default_cluster");
    }
    for key in names_of_top(new)
        .into_iter()
        .filter(|key| !NAMED_SECTIONS.contains(&key.as_str()))
    {
        let Some(old) = existing.get(&key).filter(|old| !old.is_null()) else {
            continue;
        };
        if key != "folders" {
            report_kept(&key, old, new.get(&key), reports);
            remove(new, &key);
            continue;
        }
        let Some(folders) = child(new, "folders") else {
            continue;
        };
        for name in names(existing, "folders") {
            if let Some(old) = old.get(&name) {
                report_kept(&format!("folders.{name}"), old, folders.get(&name), reports);
            }
            remove(folders, &name);
        }
        if names(new, "folders").is_empty() {
            remove(new, "folders");
        }
    }
}

/// Reports a value that is not used, in the report of its file.
fn report_kept(key: &str, old: &Node, new: Option<&Node>, reports: &mut [Report]) {
    let Some(new) = new.filter(|new| value(new) != value(old)) else {
        return;
    };
    let words = format!(
        "`{key}` stays as it is in {}: `{}`; here it would be `{}`",
        old.at,
        shown(old),
        shown(new)
    );
    if let Some(report) = report_of(&new.at, reports) {
        report.warn(words);
    }
}

fn report_of<'r>(at: &Position, reports: &'r mut [Report]) -> Option<&'r mut Report> {
    let own = reports
        .iter()
        .position(|report| *report.source == *at.source)
        .unwrap_or(0);
    reports.get_mut(own)
}

/// `sync` and a folder are replaced whole, not key by key.
fn replace_whole(expected: &mut Node, new: &Node) {
    if new.get("sync").is_some() {
        remove(expected, "sync");
    }
    if let Some(folders) = child(expected, "folders") {
        for name in names(new, "folders") {
            remove(folders, &name);
        }
    }
}

fn names_of_top(tree: &Node) -> Vec<String> {
    match &tree.content {
        Content::Mapping(entries) => entries
            .iter()
            .filter_map(|(name, _)| name.text().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}
