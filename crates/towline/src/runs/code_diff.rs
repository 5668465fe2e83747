//! Differences between the code of two runs: which files, and which lines of text files.

use crate::context::Context;
use crate::output;
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};
use towline_core::Result;
use towline_engine::flow::code;
use towline_snapshot::digest::Digest;
use towline_snapshot::manifest::{Entry, Kind};
use towline_snapshot::read::read_file;
use towline_snapshot::root::{Root, read_root};
use towline_snapshot::store::FolderStore;

/// Longer files are named, but their lines are not compared.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// How many files show their lines; further ones are only named.
const MAX_SHOWN_FILES: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct CodeDiff {
    /// The entries of each snapshot at the paths that differ.
    pub(crate) one: BTreeMap<String, String>,
    pub(crate) other: BTreeMap<String, String>,
    /// Unified diffs, one text per file.
    pub(crate) changes: Vec<String>,
}

/// Compares two snapshots on this machine. `None` if they are the same, or one is unknown.
pub(crate) fn code_diff(
    context: &Context,
    one: Option<&String>,
    other: Option<&String>,
) -> Result<CodeDiff> {
    let mut diff = CodeDiff::default();
    let (Some(one), Some(other)) = (one, other) else {
        return Ok(diff);
    };
    if one == other {
        return Ok(diff);
    }
    let store = code::local_store(context.state()?)?;
    let (Some(one), Some(other)) = (kept(&store.store, one), kept(&store.store, other)) else {
        return Ok(diff);
    };
    let (left, right) = (files(&one), files(&other));
    let paths: BTreeSet<&[u8]> = left.keys().chain(right.keys()).copied().collect();
    for path in paths {
        let (before, after) = (left.get(path).copied(), right.get(path).copied());
        if before.map(|entry| (&entry.kind, entry.mode))
            == after.map(|entry| (&entry.kind, entry.mode))
        {
            continue;
        }
        let name = String::from_utf8_lossy(path).into_owned();
        diff.one
            .extend(before.map(|entry| (name.clone(), describe(entry))));
        diff.other
            .extend(after.map(|entry| (name.clone(), describe(entry))));
        if diff.changes.len() < MAX_SHOWN_FILES {
            let text = |root: &Root, entry: Option<&Entry>| match entry {
                None => Some(String::new()),
                Some(entry) => read_file(root, &store.store, entry, MAX_TEXT_BYTES)
                    .ok()
                    .flatten()
                    .and_then(|bytes| String::from_utf8(bytes).ok()),
            };
            diff.changes.extend(
                text(&one, before)
                    .zip(text(&other, after))
                    .and_then(|(before, after)| unified(&name, &before, &after)),
            );
        }
    }
    Ok(diff)
}

fn kept(store: &FolderStore, id: &str) -> Option<Root> {
    let root = Digest::parse(id).and_then(|id| read_root(store, &id).ok());
    if root.is_none() {
        output::status(&format!(
            "warning: the snapshot {} is not kept any more; its files are not compared",
            id.get(..12).unwrap_or(id)
        ));
    }
    root
}

fn files(root: &Root) -> BTreeMap<&[u8], &Entry> {
    root.manifest
        .entries
        .iter()
        .filter(|entry| entry.kind != Kind::Folder)
        .map(|entry| (&*entry.path, entry))
        .collect()
}

fn unified(name: &str, before: &str, after: &str) -> Option<String> {
    let text = TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&format!("one/{name}"), &format!("other/{name}"))
        .to_string();
    (!text.is_empty()).then_some(text)
}

/// A text that is equal for equal content.
fn describe(entry: &Entry) -> String {
    match &entry.kind {
        Kind::Folder => "folder".to_owned(),
        Kind::Link(target) => format!("link to {}", String::from_utf8_lossy(target)),
        Kind::Same(first) => format!("another name of {}", String::from_utf8_lossy(first)),
        Kind::File(_) => {
            let digests: Vec<u8> = entry.chunks().flat_map(|(digest, _)| digest.0).collect();
            format!(
                "{} bytes, mode {:o}, {}",
                entry.size(),
                entry.mode,
                Digest::of(&digests).short()
            )
        }
    }
}
