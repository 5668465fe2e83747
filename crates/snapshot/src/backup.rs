//! Backups of a workspace: the same packs as snapshots, and one root object for each, written last,
//! which says exactly what was there. Whatever is cut short leaves packs that nothing names.

use crate::continues::{Mark, Marked, is_overtaken};
use crate::digest::Digest;
use crate::manifest::{Flavor, Kind, Manifest, Piece, Top};
use crate::pending_deletion;
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::reading::{Read, Reading};
use crate::root::{MAX_SUMMARY_BYTES, Summary};
use crate::rules::{Rules, Why};
use crate::stat_cache;
use crate::store::{Blob, BlobKind, BlobStore, Stored};
use crate::take::{Options, make_manifest, make_root, open_index, remember, without};
use crate::walk::{Found, FoundKind, LeftOut, Stamp, Walked, walk};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use towline_host::crash;

/// A tree whose files are renamed while it is read is walked up to this often.
const MAX_WALKS: usize = 3;

/// What is kept of a workspace, and what that took.
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

/// Where the workspace is now.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub host: String,
    pub folder: String,
    /// Where its backups go, in words.
    pub to: String,
    /// It becomes the newest backup also where that is of something else.
    pub anyway: bool,
}

/// One backup of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub blob: Blob,
    /// By which it is ordered and kept, in milliseconds; later than the one before, whatever the
    /// clocks said.
    pub at: i64,
    pub size: u64,
    /// `None` where it cannot be read.
    pub summary: Option<Summary>,
}

/// The backups of a store, oldest first.
pub fn list(store: &dyn BlobStore) -> Result<Vec<Listed>> {
    let mut stored = store.list(BlobKind::Backup)?;
    stored.sort_by_key(|stored| when(&stored.blob));
    Ok(stored
        .into_iter()
        .map(|stored| look(store, &stored))
        .collect())
}

/// The newest backup of a store.
pub fn newest(store: &dyn BlobStore) -> Result<Option<Listed>> {
    Ok(newest_stored(store)?.map(|stored| look(store, &stored)))
}

fn newest_stored(store: &dyn BlobStore) -> Result<Option<Stored>> {
    Ok(store
        .list(BlobKind::Backup)?
        .into_iter()
        .max_by_key(|stored| when(&stored.blob)))
}

fn when(blob: &Blob) -> (i64, Digest) {
    if let Blob::Backup(at, digest) = *blob {
        (at, digest)
    } else {
        (i64::MIN, blob.digest())
    }
}

fn look(store: &dyn BlobStore, stored: &Stored) -> Listed {
    let beginning = usize::try_from(stored.size)
        .unwrap_or(usize::MAX)
        .min(MAX_SUMMARY_BYTES);
    let summary = store
        .get_range(&stored.blob, 0, beginning)
        .ok()
        .and_then(|bytes| Summary::peek(&bytes));
    Listed {
        blob: stored.blob,
        at: when(&stored.blob).0,
        size: stored.size,
        summary,
    }
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
    let mut tries = 0;
    loop {
        tries += 1;
        let top = top(root)?;
        let walked = walk(root, rules, options.limits)?;
        if walked
            .found
            .iter()
            .all(|found| found.kind == FoundKind::Folder)
        {
            return Err(Problem::Empty(root.to_owned()));
        }
        let backing = Backing {
            root,
            store,
            options,
            place,
            progress,
        };
        if let Some(done) = backing.attempt(top, walked, tries < MAX_WALKS)? {
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

/// Names of a file that has another name before them: by their places, the file's place.
fn hard_links(found: &[Found]) -> HashMap<usize, usize> {
    let mut first: HashMap<(u64, u64), usize> = HashMap::new();
    let mut hard_links = HashMap::new();
    for (number, found) in found
        .iter()
        .enumerate()
        .filter(|(_, found)| found.has_hard_links)
    {
        let file = *first
            .entry((found.stamp.device, found.stamp.inode))
            .or_insert(number);
        if file != number {
            hard_links.insert(number, file);
        }
    }
    hard_links
}

struct Backing<'a> {
    root: &'a Path,
    store: &'a dyn BlobStore,
    options: &'a Options,
    place: &'a Place,
    progress: &'a Progress,
}

impl Backing<'_> {
    /// `None`: names were moved while they were read; with `may_retry` that is worth another walk.
    fn attempt(&self, top: Top, walked: Walked, may_retry: bool) -> Result<Option<BackedUp>> {
        let Walked {
            found,
            mut left_out,
            ..
        } = walked;
        let hard_links = hard_links(&found);
        let recalled = stat_cache::recall(stat_cache::load(&self.options.stat_cache), &found);
        let newest = newest_stored(self.store)?;
        let last = newest.as_ref().map(|stored| when(&stored.blob));
        let is_known = |number: usize| {
            found[number].kind != FoundKind::File
                || recalled[number].is_some()
                || hard_links.contains_key(&number)
        };
        if let Some((at, digest)) = last
            && (0..found.len()).all(is_known)
        {
            let manifest = self.manifest(top, &found, recalled.clone(), &hard_links)?;
            if manifest.id() == digest && self.is_built_on(at, digest)? {
                return Ok(Some(self.unchanged(
                    &manifest,
                    Blob::Backup(at, digest),
                    left_out,
                )));
            }
        }
        self.refuse_overtaken(newest.as_ref())?;
        let index = open_index(self.store, &self.options.index)?;
        let reading = Reading::new(
            self.root,
            &found,
            recalled,
            self.store,
            index,
            self.options,
            self.progress,
        )
        .of_workspace(&hard_links);
        let Read {
            pieces,
            stamps,
            index,
            stored,
            unsteady,
            read,
            gone,
            unreadable,
        } = reading.run()?;
        if may_retry && hard_links.values().any(|file| gone.contains(file)) {
            return Ok(None);
        }
        left_out.extend(unreadable.iter().map(|number| LeftOut {
            path: found[*number].path.clone(),
            is_folder: false,
            why: Why::Unreadable,
        }));
        let same: HashMap<Box<[u8]>, Box<[u8]>> = hard_links
            .iter()
            .map(|(hard_link, file)| (found[*hard_link].path.clone(), found[*file].path.clone()))
            .collect();
        let gone: HashSet<usize> = gone
            .iter()
            .copied()
            .chain(
                hard_links
                    .iter()
                    .filter(|(_, file)| gone.contains(file))
                    .map(|(hard_link, _)| *hard_link),
            )
            .collect();
        let (found, pieces, stamps) = without(&gone, found, pieces, stamps);
        remember(
            &self.options.stat_cache,
            &found,
            &pieces,
            &stamps,
            &unsteady,
            self.options.now,
        )?;
        let hard_links = self::hard_links_by_path(&found, &same);
        let manifest = self.manifest(top, &found, pieces, &hard_links)?;
        let id = manifest.id();
        if let Some((at, digest)) = last.filter(|(_, digest)| *digest == id)
            && self.is_built_on(at, digest)?
        {
            return Ok(Some(BackedUp {
                read,
                unsteady,
                ..self.unchanged(&manifest, Blob::Backup(at, digest), left_out)
            }));
        }
        let taken = self.options.now / 1_000_000;
        let at = last.map_or(taken, |(last, _)| taken.max(last + 1));
        let doubtful = left_out
            .iter()
            .filter(|left| left.why == Why::Unreadable)
            .count()
            + unsteady.len();
        let summary = Summary {
            taken,
            stored,
            doubtful: doubtful as u64,
            ..self.summary(&manifest)
        };
        let mut kept = make_root(
            manifest,
            crate::root::About {
                taken,
                name: self.options.name.clone(),
            },
            &index,
        )?;
        kept.summary = Some(summary.clone());
        let blob = Blob::Backup(at, id);
        // First the mark: whoever is killed in between continues what was there before.
        self.mark(blob);
        crash::pass("backup.root.before");
        self.store.put(&blob, &kept.encode()?)?;
        crash::pass("backup.root.done");
        Ok(Some(BackedUp {
            blob,
            summary,
            read,
            left_out,
            unsteady,
            was_there: false,
        }))
    }

    /// A copy that others have gone on from elsewhere does not become the newest backup unnoticed.
    fn refuse_overtaken(&self, newest: Option<&Stored>) -> Result<()> {
        let mark = Marked::new(self.root, &self.place.to).read();
        let is_unknown = |newest: &&Stored| {
            !self.place.anyway && !mark.is_some_and(|mark| mark.knows_of(when(&newest.blob).0))
        };
        let Some(newest) = newest
            .filter(is_unknown)
            .map(|newest| look(self.store, newest))
        else {
            return Ok(());
        };
        if is_overtaken(mark, &newest, self.place) {
            return Err(Problem::Overtaken {
                folder: self.root.to_owned(),
                mark,
                newest: Box::new(newest),
            });
        }
        Ok(())
    }

    fn mark(&self, blob: Blob) {
        if let Some(mark) = Mark::of(&blob, false) {
            Marked::new(self.root, &self.place.to).write(mark);
        }
    }

    /// Whether the newest backup may stand for a workspace that did not change: nothing of it was
    /// found damaged since, and put on a list.
    fn is_built_on(&self, at: i64, digest: Digest) -> Result<bool> {
        let listed: HashSet<Digest> = pending_deletion::packs_since(self.store, at)?
            .into_iter()
            .map(|(pack, _)| pack)
            .collect();
        if listed.is_empty() {
            return Ok(true);
        }
        Ok(crate::root::read(self.store, &Blob::Backup(at, digest))
            .is_ok_and(|root| !root.packs.iter().any(|pack| listed.contains(pack))))
    }

    fn manifest(
        &self,
        top: Top,
        found: &[Found],
        mut pieces: Vec<Option<Vec<Piece>>>,
        hard_links: &HashMap<usize, usize>,
    ) -> Result<Manifest> {
        for hard_link in hard_links.keys() {
            pieces[*hard_link] = Some(Vec::new());
        }
        let mut manifest = make_manifest(self.root, found, pieces)?;
        (manifest.flavor, manifest.top) = (Flavor::Workspace, top);
        if !hard_links.is_empty() {
            let same: HashMap<&[u8], &[u8]> = hard_links
                .iter()
                .map(|(hard_link, file)| (&*found[*hard_link].path, &*found[*file].path))
                .collect();
            for entry in &mut manifest.entries {
                if let Some(file) = same.get(&*entry.path) {
                    entry.kind = Kind::Same((*file).into());
                }
            }
        }
        Ok(manifest)
    }

    fn summary(&self, manifest: &Manifest) -> Summary {
        let Place { host, folder, .. } = self.place.clone();
        Summary {
            name: self.options.name.clone(),
            host,
            folder,
            files: manifest.files() as u64,
            bytes: manifest.bytes(),
            ..Summary::default()
        }
    }

    fn unchanged(&self, manifest: &Manifest, blob: Blob, left_out: Vec<LeftOut>) -> BackedUp {
        self.mark(blob);
        let taken = self.options.now / 1_000_000;
        BackedUp {
            blob,
            summary: Summary {
                taken,
                ..self.summary(manifest)
            },
            read: 0,
            left_out,
            unsteady: Vec::new(),
            was_there: true,
        }
    }
}

fn hard_links_by_path(
    found: &[Found],
    same: &HashMap<Box<[u8]>, Box<[u8]>>,
) -> HashMap<usize, usize> {
    if same.is_empty() {
        return HashMap::new();
    }
    let places: HashMap<&[u8], usize> = found
        .iter()
        .enumerate()
        .map(|(number, found)| (&*found.path, number))
        .collect();
    same.iter()
        .filter_map(|(hard_link, file)| Some((*places.get(&**hard_link)?, *places.get(&**file)?)))
        .collect()
}
