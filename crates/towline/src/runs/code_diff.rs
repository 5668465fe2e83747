//! Differences between the code of two runs: which files, and which lines of text files.

use crate::context::Context;
use crate::output;
use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
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

/// How many equal lines are shown before and after a change.
const CONTEXT_LINES: u32 = 3;

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

/// The lines that differ, as `diff -u` writes them, so that `patch` reads them.
fn unified(name: &str, before: &str, after: &str) -> Option<String> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let mut text = String::new();
    let mut close: Vec<Hunk> = Vec::new();
    for hunk in diff.hunks() {
        if let Some(last) = close.last()
            && hunk.before.start - last.before.end > 2 * CONTEXT_LINES
        {
            write_hunks(&input, &close, &mut text);
            close.clear();
        }
        close.push(hunk);
    }
    write_hunks(&input, &close, &mut text);
    (!text.is_empty()).then(|| format!("--- one/{name}\n+++ other/{name}\n{text}"))
}

/// Writes hunks that share their context, below one header.
fn write_hunks(input: &InternedInput<&str>, hunks: &[Hunk], text: &mut String) {
    let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else {
        return;
    };
    let lines = u32::try_from(input.before.len()).unwrap_or(u32::MAX);
    let lead = CONTEXT_LINES.min(first.before.start);
    let tail = CONTEXT_LINES.min(lines - last.before.end);
    let range = |start: u32, end: u32| {
        let (start, len) = (start - lead, end + tail - (start - lead));
        // Lines count from 1. An empty range is named by the line before it, one line by its number.
        match len {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{len}", start + 1),
        }
    };
    text.push_str(&format!(
        "@@ -{} +{} @@\n",
        range(first.before.start, last.before.end),
        range(first.after.start, last.after.end)
    ));
    let mut add = |sign: char, tokens: &[Token]| {
        for token in tokens {
            let line = input.interner[*token];
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    let mut done = first.before.start - lead;
    for hunk in hunks {
        add(' ', part(&input.before, done..hunk.before.start));
        add('-', part(&input.before, hunk.before.clone()));
        add('+', part(&input.after, hunk.after.clone()));
        done = hunk.before.end;
    }
    add(' ', part(&input.before, done..done + tail));
}

fn part(tokens: &[Token], range: Range<u32>) -> &[Token] {
    &tokens[range.start as usize..range.end as usize]
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

#[cfg(test)]
mod tests {
    use super::unified;
    use proptest::prelude::*;

    fn hunks(before: &str, after: &str) -> Option<String> {
        let text = unified("a", before, after)?;
        Some(text.strip_prefix("--- one/a\n+++ other/a\n")?.to_owned())
    }

    #[test]
    fn a_diff_is_what_patch_reads() {
        assert_eq!(hunks("x\n", "x\n"), None);
        assert_eq!(
            hunks("", "x\ny\n").as_deref(),
            Some("@@ -0,0 +1,2 @@\n+x\n+y\n")
        );
        assert_eq!(
            hunks("1\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n").as_deref(),
            Some("@@ -2,4 +2,4 @@\n 2\n 3\n 4\n-5\n+five\n")
        );
        assert_eq!(
            hunks("x\n", "x").as_deref(),
            Some("@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file\n")
        );
    }

    /// Carries a diff out, as `patch` does.
    fn patched(before: &str, diff: &str) -> String {
        let old: Vec<&str> = before.split_inclusive('\n').collect();
        let (mut new, mut next) = (String::new(), 0);
        for line in diff.split_inclusive('\n') {
            if let Some(header) = line.strip_prefix("@@ -") {
                let range = header.split(' ').next().expect("a range");
                let (start, len) = range.split_once(',').unwrap_or((range, "1"));
                let start: usize = start.parse().expect("a number");
                let start = start - usize::from(len != "0");
                new.extend(old[next..start].iter().copied());
                next = start;
            } else if line.starts_with('\\') {
                new.pop();
            } else if let Some(added) = line.strip_prefix('+') {
                new.push_str(added);
            } else {
                let kept = line.strip_prefix(' ');
                assert_eq!(old[next].trim_end(), line[1..].trim_end());
                new.push_str(kept.unwrap_or_default());
                next += 1;
            }
        }
        new.extend(old[next..].iter().copied());
        new
    }

    proptest! {
        #[test]
        fn any_diff_leads_from_one_text_to_the_other(
            before in "([a-c]\n){0,30}",
            after in "([a-c]\n){0,30}",
        ) {
            let diff = hunks(&before, &after).unwrap_or_default();
            prop_assert_eq!(patched(&before, &diff), after);
        }
    }
}
