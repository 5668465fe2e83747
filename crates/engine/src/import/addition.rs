//! An import into a folder that has a `towline.yaml`: missing keys are added, present ones are kept
//! as written, and contradictions are refused.

use super::merge::{NAMED_SECTIONS, child, conflict, names, remove, shown};
use super::yaml_text::{self, value};
use super::{Made, Placing, Report, insert};
use crate::layers::PROJECT_FILE;
use towline_core::yaml::{self, Content, Node, Position};
use towline_core::{Error, Result};

const FILE_CHANGED_HINT: &str =
    "`--force` writes it anew, without its comments; the old one is kept as towline.yaml.old";

/// The file with the new keys, or `None` if it has all of them.
pub(super) fn onto(
    existing: &str,
    mut new: Node,
    title: &str,
    force: bool,
    reports: &mut [Report],
) -> Result<Option<Made>> {
    let there = yaml::parse(PROJECT_FILE, existing)?;
    if !matches!(there.content, Content::Mapping(_)) {
        return Err(Error::config(format!(
            "{}: expected a mapping of keys to values",
            there.at
        )));
    }
    let mut expected = there.clone();
    if force {
        replace_whole(&mut expected, &new);
    } else {
        refuse_conflicts(&there, &new)?;
        keep(&there, &mut new, reports);
    }
    expected.overlay(new.clone());
    if value(&expected) == value(&there) {
        return Ok(None);
    }
    let name = PROJECT_FILE.to_owned();
    if force {
        return Ok(Some(Made {
            name,
            text: yaml_text::file(title, &expected),
            placing: Placing::Anew,
        }));
    }
    let text = insert::insert(existing, &there, &new);
    let reads = yaml::parse(PROJECT_FILE, &text).is_ok_and(|read| value(&read) == value(&expected));
    if !reads {
        return Err(Error::refused(format!(
            "{PROJECT_FILE} is written in a way that nothing can be added to; nothing was written"
        ))
        .hint(FILE_CHANGED_HINT));
    }
    Ok(Some(Made {
        name,
        text,
        placing: Placing::Added,
    }))
}

/// Refuses clusters and datastores of one name that differ.
fn refuse_conflicts(there: &Node, new: &Node) -> Result<()> {
    let found = NAMED_SECTIONS
        .iter()
        .find_map(|kind| conflict(there.get(kind)?, new.get(kind)?, kind));
    let Some(found) = found else { return Ok(()) };
    let (old, new) = (shown(found.there), shown(found.new));
    Err(Error::refused(format!(
        "{}: `{}` is `{old}` there, and `{new}` in {}; nothing was written",
        found.there.at, found.key, found.new.at
    ))
    .hint("`--force` takes the new values; the old file is kept as towline.yaml.old")
    .hint("or import both files in one command: then the second one gets a name of its own"))
}

/// Removes from `new` the keys that are kept as they are in the file.
fn keep(there: &Node, new: &mut Node, reports: &mut [Report]) {
    if !names(there, "clusters").is_empty() {
        remove(new, "default_cluster");
    }
    for key in names_of_top(new)
        .into_iter()
        .filter(|key| !NAMED_SECTIONS.contains(&key.as_str()))
    {
        let Some(old) = there.get(&key).filter(|old| !old.is_null()) else {
            continue;
        };
        if key != "folders" {
            tell_kept(&key, old, new.get(&key), reports);
            remove(new, &key);
            continue;
        }
        let Some(folders) = child(new, "folders") else {
            continue;
        };
        for name in names(there, "folders") {
            if let Some(old) = old.get(&name) {
                tell_kept(&format!("folders.{name}"), old, folders.get(&name), reports);
            }
            remove(folders, &name);
        }
        if names(new, "folders").is_empty() {
            remove(new, "folders");
        }
    }
}

/// Reports a value that is not used, in the report of its file.
fn tell_kept(key: &str, old: &Node, new: Option<&Node>, reports: &mut [Report]) {
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
