//! Backups of a workspace. They share packs with snapshots. Each has one root object, written last,
//! which says exactly what was there; a backup that is cut short leaves packs that nothing names.

mod list;

pub use list::{Listed, list, newest};

use crate::continues::{Mark, Marked, is_overtaken};
use crate::digest::Digest;
use crate::index::Index;
use crate::ingest::{Ingest, Ingested, Task};
use crate::manifest::{Flavor, Manifest, Top};
use crate::pending_deletion;
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::root::{About, Summary};
use crate::rules::{Rules, Why};
use crate::stat_cache;
use crate::store::{Blob, BlobStore, Stored};
use crate::take::Options;
use crate::tree::{HardLinks, TreeEntry, make_manifest, make_root, remove_gone, unsteady_paths};
use crate::walk::{Found, FoundKind, LeftOut, Stamp, Walked, walk};
use list::{moment_and_id, newest_stored, with_summary};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use towline_host::crash;

/// A tree whose files are renamed while it is read is walked up to this often.
const MAX_WALKS: usize = 3;

/// A backup that is in the store, and how much work it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackedUp {
    pub blob: Blob,
    pub summary: Summary,
    /// Files that had to be read.
    pub read: usize,
    pub left_out: Vec<LeftOut>,
    /// Files that kept changing while they were read.
    pub unsteady: Vec<String>,
    /// The last backup has all of it already.
    pub was_there: bool,
}

/// The present place of the workspace.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub host: String,
    pub folder: String,
    /// The place of its backups, in words.
    pub to: String,
    /// The backup is made even if the newest one is of something else.
    pub anyway: bool,
}

/// Backs a workspace up. Once this returns, all of it is in the store; before that nothing of it is
/// listed.
pub fn back_up(
    root: &Path,
    rules: &Rules,
    store: &dyn BlobStore,
    options: &Options,
    place: &Place,
    progress: &Progress,
) -> Result<BackedUp> {
    let task = Task {
        root,
        store,
        options,
        progress,
    };
    let mut walks = 0;
    loop {
        walks += 1;
        let top = top(root)?;
        let walked = walk(root, rules, options.limits)?;
        if walked
            .found
            .iter()
            .all(|found| found.kind == FoundKind::Folder)
        {
            return Err(Problem::Empty(root.to_owned()));
        }
        let workspace = Workspace::new(top, walked, options);
        let backup = Backup { task, place };
        if let Some(done) = backup.attempt(workspace, walks < MAX_WALKS)? {
            return Ok(done);
        }
    }
}

fn top(root: &Path) -> Result<Top> {
    let stat = rustix::fs::stat(root).map_err(|error| Problem::file(root, "read", error))?;
    let stamp = Stamp::of(&stat);
    Ok(Top {
        mode: stat.st_mode & Flavor::Workspace.mode_bits(true),
        modified: stamp.modified,
    })
}

fn hard_links(found: &[Found]) -> HardLinks {
    let mut first: HashMap<(u64, u64), &[u8]> = HashMap::new();
    let mut hard_links = HardLinks::new();
    for found in found.iter().filter(|found| found.has_hard_links) {
        let inode = (found.stamp.device, found.stamp.inode);
        let first = *first.entry(inode).or_insert(&found.path);
        if first != &*found.path {
            hard_links.insert(found.path.clone(), first.into());
        }
    }
    hard_links
}

/// A workspace as a walk found it.
struct Workspace {
    top: Top,
    entries: Vec<TreeEntry>,
    hard_links: HardLinks,
    left_out: Vec<LeftOut>,
}

impl Workspace {
    fn new(top: Top, walked: Walked, options: &Options) -> Self {
        Self {
            top,
            hard_links: hard_links(&walked.found),
            entries: stat_cache::recall(&options.stat_cache, walked.found),
            left_out: walked.left_out,
        }
    }

    /// Whether no file has to be read.
    fn is_known(&self) -> bool {
        self.entries.iter().all(|entry| {
            !entry.is_file()
                || entry.pieces.is_some()
                || self.hard_links.contains_key(&entry.found.path)
        })
    }

    fn manifest(&self, root: &Path) -> Result<Manifest> {
        Ok(Manifest {
            flavor: Flavor::Workspace,
            top: self.top,
            ..make_manifest(root, &self.entries, &self.hard_links)?
        })
    }

    /// Paths of files that have hard links and could not be read.
    fn lost_first_names(&self, gone: &HashSet<usize>) -> HashSet<Box<[u8]>> {
        let gone: HashSet<&[u8]> = gone
            .iter()
            .map(|number| &*self.entries[*number].found.path)
            .collect();
        self.hard_links
            .values()
            .filter(|first| gone.contains(&***first))
            .cloned()
            .collect()
    }

    /// Lists unreadable files as left out.
    fn leave_out(&mut self, unreadable: &[usize]) {
        self.left_out
            .extend(unreadable.iter().map(|number| LeftOut {
                path: self.entries[*number].found.path.clone(),
                is_folder: false,
                why: Why::Unreadable,
            }));
    }

    /// Removes files that could not be read, and the hard links to them.
    fn remove(&mut self, gone: &HashSet<usize>, lost_first_names: &HashSet<Box<[u8]>>) {
        remove_gone(&mut self.entries, gone);
        if !lost_first_names.is_empty() {
            let is_lost = |path: &[u8]| {
                self.hard_links
                    .get(path)
                    .is_some_and(|first| lost_first_names.contains(first))
            };
            self.entries.retain(|entry| !is_lost(&entry.found.path));
        }
    }

    /// How much of the workspace is not in the backup for certain.
    fn doubtful(&self, unsteady: &[String]) -> u64 {
        let unreadable = self
            .left_out
            .iter()
            .filter(|left| left.why == Why::Unreadable)
            .count();
        (unreadable + unsteady.len()) as u64
    }
}

struct Backup<'a> {
    task: Task<'a>,
    place: &'a Place,
}

impl Backup<'_> {
    /// `None` if names were moved while they were read and `may_retry` allows another walk.
    fn attempt(&self, mut workspace: Workspace, may_retry: bool) -> Result<Option<BackedUp>> {
        let Task {
            root,
            store,
            options,
            ..
        } = self.task;
        let newest = newest_stored(store)?;
        let last = newest.as_ref().map(|stored| moment_and_id(&stored.blob));
        if last.is_some() && workspace.is_known() {
            let manifest = workspace.manifest(root)?;
            if let Some(blob) = self.same_backup(last, &manifest)? {
                return Ok(Some(self.unchanged(&manifest, blob, workspace.left_out)));
            }
        }
        self.refuse_overtaken(newest.as_ref())?;
        let index = Index::open(store, &options.index)?;
        let ingested = Ingest::new(self.task, &workspace.entries, index)
            .for_workspace(&workspace.hard_links)
            .run()?;
        let read = ingested.files_read();
        let lost_first_names = workspace.lost_first_names(&ingested.gone);
        if may_retry && !lost_first_names.is_empty() {
            return Ok(None);
        }
        let Ingested {
            contents,
            gone,
            unreadable,
            index,
            stored,
        } = ingested;
        contents.fill(&mut workspace.entries);
        workspace.leave_out(&unreadable);
        workspace.remove(&gone, &lost_first_names);
        stat_cache::update(&options.stat_cache, &workspace.entries, options.now)?;
        let unsteady = unsteady_paths(&workspace.entries);
        let manifest = workspace.manifest(root)?;
        if let Some(blob) = self.same_backup(last, &manifest)? {
            return Ok(Some(BackedUp {
                read,
                unsteady,
                ..self.unchanged(&manifest, blob, workspace.left_out)
            }));
        }
        let summary = Summary {
            stored,
            doubtful: workspace.doubtful(&unsteady),
            ..self.summary(&manifest)
        };
        let blob = self.write_root(manifest, &summary, &index, last.map(|(at, _)| at))?;
        Ok(Some(BackedUp {
            blob,
            summary,
            read,
            left_out: workspace.left_out,
            unsteady,
            was_there: false,
        }))
    }

    /// The last backup, if it is of this manifest and whole.
    fn same_backup(
        &self,
        last: Option<(i64, Digest)>,
        manifest: &Manifest,
    ) -> Result<Option<Blob>> {
        let Some((at, digest)) = last.filter(|(_, digest)| *digest == manifest.id()) else {
            return Ok(None);
        };
        Ok(self
            .is_whole(at, digest)?
            .then_some(Blob::Backup(at, digest)))
    }

    fn write_root(
        &self,
        manifest: Manifest,
        summary: &Summary,
        index: &Index,
        last: Option<i64>,
    ) -> Result<Blob> {
        let taken = summary.taken;
        let blob = Blob::Backup(
            last.map_or(taken, |last| taken.max(last + 1)),
            manifest.id(),
        );
        let about = About {
            taken,
            name: self.task.options.name.clone(),
        };
        let mut root = make_root(manifest, about, index)?;
        root.summary = Some(summary.clone());
        // The mark comes first: a folder whose backup is killed in between still continues the
        // backup before.
        self.mark(blob);
        crash::pass("backup.root.before");
        self.task.store.put(&blob, &root.encode()?)?;
        crash::pass("backup.root.done");
        Ok(blob)
    }

    /// An error if the newest backup is of something that this folder does not know of: an old copy
    /// does not become the newest backup unnoticed.
    fn refuse_overtaken(&self, newest: Option<&Stored>) -> Result<()> {
        let mark = Marked::new(self.task.root, &self.place.to).read();
        let is_unknown = |newest: &&Stored| {
            let at = moment_and_id(&newest.blob).0;
            !self.place.anyway && !mark.is_some_and(|mark| mark.knows_of(at))
        };
        let Some(newest) = newest
            .filter(is_unknown)
            .map(|newest| with_summary(self.task.store, newest))
        else {
            return Ok(());
        };
        if is_overtaken(mark, &newest, self.place) {
            return Err(Problem::Overtaken {
                folder: self.task.root.to_owned(),
                mark,
                newest: Box::new(newest),
            });
        }
        Ok(())
    }

    fn mark(&self, blob: Blob) {
        if let Some(mark) = Mark::of(&blob, false) {
            Marked::new(self.task.root, &self.place.to).write(mark);
        }
    }

    /// Whether a backup may stand for a workspace that did not change: none of its packs was found
    /// damaged since and put on a list.
    fn is_whole(&self, at: i64, digest: Digest) -> Result<bool> {
        let listed: HashSet<Digest> = pending_deletion::packs_since(self.task.store, at)?
            .into_iter()
            .map(|(pack, _)| pack)
            .collect();
        if listed.is_empty() {
            return Ok(true);
        }
        Ok(
            crate::root::read(self.task.store, &Blob::Backup(at, digest))
                .is_ok_and(|root| !root.packs.iter().any(|pack| listed.contains(pack))),
        )
    }

    fn summary(&self, manifest: &Manifest) -> Summary {
        let Place { host, folder, .. } = self.place.clone();
        Summary {
            taken: self.task.options.now / 1_000_000,
            name: self.task.options.name.clone(),
            host,
            folder,
            files: manifest.files() as u64,
            bytes: manifest.bytes(),
            ..Summary::default()
        }
    }

    fn unchanged(&self, manifest: &Manifest, blob: Blob, left_out: Vec<LeftOut>) -> BackedUp {
        self.mark(blob);
        BackedUp {
            blob,
            summary: self.summary(manifest),
            read: 0,
            left_out,
            unsteady: Vec::new(),
            was_there: true,
        }
    }
}
