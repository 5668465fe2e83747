//! Taking a snapshot: walk the tree, recall what is known, read and store the rest, write the root.

use crate::digest::Digest;
use crate::index::Index;
use crate::ingest::{Ingest, Task};
use crate::manifest::Manifest;
use crate::pack::Compression;
use crate::problem::Result;
use crate::progress::Progress;
use crate::root::About;
use crate::rules::Rules;
use crate::stat_cache;
use crate::store::{Blob, BlobStore};
use crate::tree::{HardLinks, make_manifest, make_root, remove_gone, unsteady_paths};
use crate::walk::{LeftOut, Limits, Walked, walk};
use std::path::{Path, PathBuf};

/// How a snapshot is taken, and the files that make the next one quicker.
#[derive(Debug, Clone)]
pub struct Options {
    pub limits: Limits,
    pub compression: Compression,
    /// The name of the tree, for people.
    pub name: String,
    /// Nanoseconds since 1970.
    pub now: i64,
    /// The file that says what each file of this tree held when it was last read.
    pub stat_cache: PathBuf,
    /// The file that says what the store is known to hold.
    pub index: PathBuf,
}

/// A snapshot that is in the store, and how much work it was.
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
    /// The store had this snapshot already.
    pub was_there: bool,
}

/// Walks `root` and takes a snapshot of it. Once this returns, all of it is in the store.
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

/// Takes a snapshot of what a walk found.
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
    let hard_links = HardLinks::new();
    let mut entries = stat_cache::recall(&options.stat_cache, found);
    if entries
        .iter()
        .all(|entry| !entry.is_file() || entry.pieces.is_some())
    {
        let manifest = make_manifest(root, &entries, &hard_links)?;
        if store.has(&Blob::Root(manifest.id()))? {
            return Ok(already_there(&manifest, left_out));
        }
    }
    let task = Task {
        root,
        store,
        options,
        progress,
    };
    let index = Index::open(store, &options.index)?;
    let ingested = Ingest::new(task, &entries, index).run()?;
    let read = ingested.files_read();
    ingested.contents.fill(&mut entries);
    remove_gone(&mut entries, &ingested.gone);
    stat_cache::update(&options.stat_cache, &entries, options.now)?;
    let manifest = make_manifest(root, &entries, &hard_links)?;
    let mut taken = Taken {
        read,
        stored: ingested.stored,
        unsteady: unsteady_paths(&entries),
        was_there: false,
        ..already_there(&manifest, left_out)
    };
    if taken.stored == 0 && store.has(&Blob::Root(taken.id))? {
        return Ok(Taken {
            was_there: true,
            ..taken
        });
    }
    let about = About {
        taken: options.now / 1_000_000,
        name: options.name.clone(),
    };
    let bytes = make_root(manifest, about, &ingested.index)?.encode()?;
    taken.stored += bytes.len() as u64;
    store.put(&Blob::Root(taken.id), &bytes)?;
    Ok(taken)
}

fn already_there(manifest: &Manifest, left_out: Vec<LeftOut>) -> Taken {
    Taken {
        id: manifest.id(),
        files: manifest.files(),
        bytes: manifest.bytes(),
        read: 0,
        stored: 0,
        left_out,
        unsteady: Vec::new(),
        was_there: true,
    }
}
