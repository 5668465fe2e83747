//! Taking a snapshot: walk, recall what is known, read what is not, keep what is new, write the
//! root.

use crate::digest::Digest;
use crate::index::Index;
use crate::manifest::{Entry, Kind, Manifest, Piece};
use crate::pack::Compression;
use crate::pending_deletion;
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::prune::roots;
use crate::reading::{Read, Reading};
use crate::root::{About, Place, Root, read};
use crate::rules::Rules;
use crate::stat_cache::{self, Known};
use crate::store::{Blob, BlobStore};
use crate::walk::{Found, FoundKind, LeftOut, Limits, Stamp, Walked, join, walk};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Where and how.
#[derive(Debug, Clone)]
pub struct Options {
    pub limits: Limits,
    pub compression: Compression,
    /// What the snapshot is of, for people.
    pub name: String,
    /// Nanoseconds since 1970.
    pub now: i64,
    /// What was in each file of this tree when it was last read.
    pub stat_cache: PathBuf,
    /// What the store is known to hold.
    pub index: PathBuf,
}

/// A snapshot that is in the store, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub id: Digest,
    pub files: usize,
    pub bytes: u64,
    /// Files that had to be read.
    pub read: usize,
    /// Bytes that went to the store.
    pub stored: u64,
    pub left_out: Vec<LeftOut>,
    /// Files that kept changing while they were read.
    pub unsteady: Vec<String>,
    /// It was there already.
    pub was_there: bool,
}

/// Takes a snapshot of what a walk found. Once this returns, all of it is in the store.
pub fn take(
    root: &Path,
    rules: &Rules,
    store: &dyn BlobStore,
    options: &Options,
    progress: &Progress,
) -> Result<Taken> {
    let walked = walk(root, rules, options.limits)?;
    take_walked(root, walked, store, options, progress)
}

pub fn take_walked(
    root: &Path,
    walked: Walked,
    store: &dyn BlobStore,
    options: &Options,
    progress: &Progress,
) -> Result<Taken> {
    let Walked {
        found, left_out, ..
    } = walked;
    let recalled = stat_cache::recall(stat_cache::load(&options.stat_cache), &found);
    let unread = found
        .iter()
        .zip(&recalled)
        .filter(|(found, pieces)| found.kind == FoundKind::File && pieces.is_none())
        .count();
    let done = |manifest: &Manifest, left_out| Taken {
        id: manifest.id(),
        files: manifest.files(),
        bytes: manifest.bytes(),
        read: 0,
        stored: 0,
        left_out,
        unsteady: Vec::new(),
        was_there: true,
    };
    if unread == 0 {
        let manifest = make_manifest(root, &found, recalled.clone())?;
        if store.has(&Blob::Root(manifest.id()))? {
            return Ok(done(&manifest, left_out));
        }
    }
    let index = open_index(store, &options.index)?;
    let reading = Reading::new(root, &found, recalled, store, index, options, progress);
    let Read {
        pieces,
        stamps,
        index,
        stored,
        unsteady,
        read,
        gone,
        ..
    } = reading.run()?;
    let (found, pieces, stamps) = without(&gone, found, pieces, stamps);
    remember(
        &options.stat_cache,
        &found,
        &pieces,
        &stamps,
        &unsteady,
        options.now,
    )?;
    let manifest = make_manifest(root, &found, pieces)?;
    let mut taken = Taken {
        read,
        stored,
        unsteady,
        was_there: false,
        ..done(&manifest, left_out)
    };
    if stored == 0 && store.has(&Blob::Root(taken.id))? {
        return Ok(Taken {
            was_there: true,
            ..taken
        });
    }
    let about = About {
        taken: options.now / 1_000_000,
        name: options.name.clone(),
    };
    let bytes = make_root(manifest, about, &index)?.encode()?;
    taken.stored += bytes.len() as u64;
    store.put(&Blob::Root(taken.id), &bytes)?;
    Ok(taken)
}

/// The index of a store, without what was given up since; rebuilt from the store when it is lost.
pub(crate) fn open_index(store: &dyn BlobStore, file: &Path) -> Result<Index> {
    let mut index = Index::load(file)?;
    let is_new = !file.exists() || index.is_partial();
    for (_, list) in pending_deletion::lists(store)? {
        // By moment and content: the same packs may be listed twice.
        let name = Digest::of(list.path().as_bytes());
        if !index.knows_list(&name) {
            index.drop_listed(
                name,
                pending_deletion::packs(store, &list)?.into_iter().collect(),
            );
        }
    }
    if is_new {
        // The newest few tell most of what is there.
        let mut roots = roots(store)?;
        roots.sort_by_key(|root| std::cmp::Reverse(root.changed));
        for root in roots.iter().take(8) {
            if let Ok(root) = read(store, &root.blob) {
                index.learn(&root);
            }
        }
    }
    // Somebody may have emptied the store behind our back: what is not there is stored again.
    let known = index.packs();
    if !known.is_empty() {
        index.strike(&store.missing(&known)?);
    }
    Ok(index)
}

pub(crate) type Parallel = (Vec<Found>, Vec<Option<Vec<Piece>>>, Vec<Option<Stamp>>);

/// The same without what is gone.
pub(crate) fn without(
    gone: &HashSet<usize>,
    found: Vec<Found>,
    pieces: Vec<Option<Vec<Piece>>>,
    stamps: Vec<Option<Stamp>>,
) -> Parallel {
    if gone.is_empty() {
        return (found, pieces, stamps);
    }
    let mut left = (Vec::new(), Vec::new(), Vec::new());
    for (number, ((found, pieces), stamp)) in found.into_iter().zip(pieces).zip(stamps).enumerate()
    {
        if !gone.contains(&number) {
            left.0.push(found);
            left.1.push(pieces);
            left.2.push(stamp);
        }
    }
    left
}

pub(crate) fn remember(
    file: &Path,
    found: &[Found],
    pieces: &[Option<Vec<Piece>>],
    stamps: &[Option<Stamp>],
    unsteady: &[String],
    now: i64,
) -> Result<()> {
    let unsteady: HashSet<&str> = unsteady.iter().map(String::as_str).collect();
    let known: Vec<Known> = found
        .iter()
        .zip(pieces)
        .enumerate()
        .filter(|(_, (found, _))| {
            found.kind == FoundKind::File
                && !unsteady.contains(&*String::from_utf8_lossy(&found.path))
        })
        .filter_map(|(number, (found, pieces))| {
            let stamp = stamps.get(number).copied().flatten();
            // What was recalled was settled; what was read is judged by how old it is.
            let settled = stamp
                .as_ref()
                .is_none_or(|stamp| stat_cache::is_settled(stamp, now));
            Some(Known {
                path: found.path.clone(),
                stamp: stamp.unwrap_or(found.stamp),
                pieces: pieces.clone()?,
                settled,
            })
        })
        .collect();
    stat_cache::save(file, &known)
}

pub(crate) fn make_manifest(
    root: &Path,
    found: &[Found],
    pieces: Vec<Option<Vec<Piece>>>,
) -> Result<Manifest> {
    let mut entries = Vec::with_capacity(found.len());
    for (found, pieces) in found.iter().zip(pieces) {
        let kind = match found.kind {
            FoundKind::Folder => Kind::Folder,
            FoundKind::File => Kind::File(pieces.ok_or_else(|| {
                Problem::damaged(String::from_utf8_lossy(&found.path), "it was not read")
            })?),
            FoundKind::Link => {
                let path = join(root, &found.path);
                match rustix::fs::readlink(&path, Vec::new()) {
                    Ok(target) => Kind::Link(target.into_bytes().into()),
                    Err(
                        rustix::io::Errno::NOENT
                        | rustix::io::Errno::NOTDIR
                        | rustix::io::Errno::INVAL,
                    ) => continue,
                    Err(error) => return Err(Problem::file(&path, "read", error)),
                }
            }
        };
        // The modes of links mean nothing.
        let mode = if found.kind == FoundKind::Link {
            0o777
        } else {
            found.mode
        };
        entries.push(Entry {
            path: found.path.clone(),
            mode,
            kind,
            modified: found.stamp.modified,
        });
    }
    Ok(Manifest {
        entries,
        ..Manifest::default()
    })
}

pub(crate) fn make_root(manifest: Manifest, about: About, index: &Index) -> Result<Root> {
    let mut packs: HashMap<Digest, u32> = HashMap::new();
    let mut frames: HashMap<(Digest, u64), u32> = HashMap::new();
    let mut seen: HashSet<Digest> = HashSet::new();
    let mut root = Root {
        about,
        ..Root::default()
    };
    let number =
        |count: usize| u32::try_from(count).map_err(|_| Problem::hostile("too many parts"));
    for (digest, _) in manifest.entries.iter().flat_map(Entry::chunks) {
        if !seen.insert(*digest) {
            continue;
        }
        let (pack, frame, offset) = index.get(digest).ok_or_else(|| {
            Problem::damaged("the index", "content that was just stored is not in it")
        })?;
        let pack_number = if let Some(number) = packs.get(pack) {
            *number
        } else {
            let next = number(root.packs.len())?;
            root.packs.push(*pack);
            packs.insert(*pack, next);
            next
        };
        let place = if let Some(number) = frames.get(&(*pack, frame.offset)) {
            *number
        } else {
            let next = number(root.frames.len())?;
            root.frames.push((pack_number, frame.clone()));
            frames.insert((*pack, frame.offset), next);
            next
        };
        root.places.push(Place {
            frame: place,
            offset,
        });
    }
    root.manifest = manifest;
    Ok(root)
}
