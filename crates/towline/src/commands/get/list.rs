//! `tow get RUN` without a path: what lies in the folder where the run started.

use crate::commands::Report;
use crate::context::Context;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use towline_core::quantity::Size;
use towline_core::record::RunRecord;
use towline_core::{Error, Result};
use towline_wire::report::get::{Entry, Listed};

/// Rows for people. `--json` has them all.
const MAX_ROWS: usize = 100;

/// The files and folders of one folder, by name.
#[derive(Debug, Default)]
pub(super) struct Folder(BTreeMap<String, Entry>);

impl Folder {
    /// Adds a file or folder; of a deeper one, the folder that holds it.
    pub(super) fn add(&mut self, path: &str, is_folder: bool, bytes: u64) {
        let (name, below) = path.split_once('/').map_or((path, None), |(name, below)| {
            (name, (!below.is_empty()).then_some(below))
        });
        if name.is_empty() {
            return;
        }
        let is_folder = is_folder || below.is_some();
        let entry = self.0.entry(name.to_owned()).or_insert_with(|| Entry {
            path: name.to_owned(),
            is_folder,
            bytes: None,
        });
        entry.is_folder |= is_folder;
        if !entry.is_folder {
            entry.bytes = Some(bytes);
        }
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.0.into_values()
    }

    pub(super) fn report(self, record: &RunRecord) -> Report {
        let answer = Listed {
            entries: self.0.into_values().collect(),
        };
        let report = Report::of(&answer, text);
        let short = record.id.short();
        let Some(first) = answer.entries.first() else {
            return report.hint(format!("{} has no files", record.id));
        };
        report.hint(format!("copy some of them: tow get {short} {}", first.path))
    }
}

fn text(answer: &Listed) -> String {
    let shown = answer.entries.iter().take(MAX_ROWS);
    let mut text: String = shown
        .map(|entry| match entry.bytes {
            Some(bytes) => format!("{:>8}  {}\n", Size(bytes), entry.path),
            None => format!("{:>8}  {}/\n", "", entry.path),
        })
        .collect();
    let more = answer.entries.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        text += &format!("{:>8}  … and {more} more\n", "");
    }
    text
}

/// Lists the files of a run on this machine.
pub(super) fn here(record: &RunRecord, roots: &[PathBuf]) -> Result<Report> {
    let mut folder = Folder::default();
    let is_there = |root: &&PathBuf| root.is_dir();
    let root = roots
        .iter()
        .find(is_there)
        .ok_or_else(|| Error::not_found(format!("the folder of {} is gone", record.id)))?;
    let failed = |error| Error::from_io(format!("{} cannot be read", root.display()), error);
    for entry in std::fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(found) = entry.path().metadata() else {
            continue;
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        folder.add(&name, found.is_dir(), found.len());
    }
    Ok(folder.report(record))
}

/// Lists the start folder of a run on a far cluster, or the files that the cluster keeps of it.
pub(super) fn far(context: &Context, record: &RunRecord, workdir: &Path) -> Result<Report> {
    let mut folder = Folder::default();
    for entry in crate::runs::far_files::list(context, record, workdir)? {
        folder.add(&entry.path, entry.is_folder, entry.size);
    }
    Ok(folder.report(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_deeper_counts_as_its_folder() {
        let mut folder = Folder::default();
        for (path, is_folder, bytes) in [
            ("out/deep/x", false, 5),
            ("out", true, 4096),
            ("a b", false, 7),
            ("", true, 0),
            ("empty/", true, 0),
        ] {
            folder.add(path, is_folder, bytes);
        }
        let entries: Vec<Entry> = folder.0.into_values().collect();
        let shown = text(&Listed { entries });
        assert_eq!(shown, "      7B  a b\n          empty/\n          out/\n");
    }
}
