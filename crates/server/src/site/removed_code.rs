//! Reads the removed code of an ended run from its snapshot: only files that equal the snapshot
//! were removed.

use super::failed;
use std::collections::{HashSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};
use towline_core::cluster::FileEntry;
use towline_core::{Result, RunId};
use towline_runner::far::ended_code;
use towline_snapshot::manifest::{Entry, Kind};
use towline_snapshot::read::read_part;
use towline_snapshot::root::Root;
use towline_snapshot::store::FolderStore;
use towline_wire::stage::StageFolder;

/// The name of the tree in a run's folder.
const CODE: &str = "code";
/// How many links are followed in a row, as the system does.
const MAX_LINKS: usize = 40;

pub(super) struct RemovedCode {
    /// The run's folder.
    folder: PathBuf,
    store: FolderStore,
    root: Root,
    absent: HashSet<Box<[u8]>>,
}

impl RemovedCode {
    /// `None` if nothing was removed.
    pub(super) fn of(stage: &StageFolder, run: &RunId) -> Result<Option<Self>> {
        let folder = stage.run(run);
        let failed = |error| failed(&folder.code_removed(), error);
        let Some(record) = ended_code::removed(&folder).map_err(failed)? else {
            return Ok(None);
        };
        let (store, root) = ended_code::snapshot(stage, &record).map_err(failed)?;
        Ok(Some(Self {
            folder: folder.root().to_owned(),
            store,
            root,
            absent: record.absent.into_iter().collect(),
        }))
    }

    /// The removed entries, with their paths in the run's folder. A name that is not UTF-8 is left
    /// out, because JSON cannot hold it.
    fn entries(&self) -> impl Iterator<Item = (String, &Entry)> {
        let entries = self
            .root
            .manifest
            .entries
            .iter()
            .filter(|entry| !self.absent.contains(&entry.path));
        entries.filter_map(|entry| {
            Some((
                format!("{CODE}/{}", std::str::from_utf8(&entry.path).ok()?),
                entry,
            ))
        })
    }

    /// Adds removed entries at or below a path that are not listed.
    pub(super) fn add_to(&self, path: &str, listed: &mut Vec<FileEntry>) {
        let Some(wanted) = self.resolved(path) else {
            return;
        };
        let known: HashSet<String> = listed.iter().map(|entry| entry.path.clone()).collect();
        for (whole, entry) in self.entries() {
            let Some(rest) = whole.strip_prefix(&wanted) else {
                continue;
            };
            let below = match (wanted.is_empty(), rest.is_empty()) {
                (true, _) | (_, true) => Some(rest),
                (false, false) => rest.strip_prefix('/'),
            };
            let Some(below) = below.filter(|below| !known.contains(*below)) else {
                continue;
            };
            let link = match &entry.kind {
                Kind::Link(target) => Some(String::from_utf8_lossy(target).into_owned()),
                _ => None,
            };
            listed.push(FileEntry {
                path: below.to_owned(),
                size: entry.size(),
                mode: entry.mode & 0o7777,
                is_folder: entry.kind == Kind::Folder,
                link,
            });
        }
    }

    /// The length of a file and some of its bytes; `None` if there is no such file.
    pub(super) fn part(
        &self,
        path: &str,
        offset: u64,
        most: u64,
    ) -> Result<Option<(u64, Vec<u8>)>> {
        let Some(wanted) = self.resolved(path) else {
            return Ok(None);
        };
        let Some((_, entry)) = self.entries().find(|(whole, _)| *whole == wanted) else {
            return Ok(None);
        };
        Ok(read_part(&self.root, &self.store, entry, offset, most)?
            .map(|bytes| (entry.size(), bytes)))
    }

    /// A path of the run's folder with its links followed, existing and removed ones; `None` if it
    /// leads out of the folder.
    fn resolved(&self, path: &str) -> Option<String> {
        let mut left: VecDeque<String> = parts(Path::new(path))?;
        let mut found: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            if part == ".." {
                found.pop()?;
                continue;
            }
            found.push(part);
            let Some(target) = self.link(&found.join("/")) else {
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            found.pop();
            let target = match target.strip_prefix(&self.folder) {
                Ok(below) => {
                    found.clear();
                    below.to_owned()
                }
                Err(_) => target,
            };
            for part in parts(&target)?.into_iter().rev() {
                left.push_front(part);
            }
        }
        Some(found.join("/"))
    }

    /// The target of a link; `None` for anything else.
    fn link(&self, path: &str) -> Option<PathBuf> {
        let place = self.folder.join(path);
        if place.symlink_metadata().is_ok() {
            return fs::read_link(place).ok();
        }
        let below = path.strip_prefix(CODE)?.strip_prefix('/')?;
        let entry =
            self.root.manifest.entries.iter().find(|entry| {
                &*entry.path == below.as_bytes() && !self.absent.contains(&entry.path)
            })?;
        match &entry.kind {
            Kind::Link(target) => std::str::from_utf8(target).ok().map(PathBuf::from),
            _ => None,
        }
    }
}

/// The components of a relative path, `..` included; `None` for an absolute one.
fn parts(path: &Path) -> Option<VecDeque<String>> {
    let mut parts = VecDeque::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push_back(name.to_str()?.to_owned()),
            Component::ParentDir => parts.push_back("..".to_owned()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts)
}
