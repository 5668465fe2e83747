//! Reading the files of a tree whose content is unknown, and storing what is new: worker threads
//! read and pack, storing threads put the packs into the store.

use crate::content::{self, Content};
use crate::digest::Digest;
use crate::index::Index;
use crate::manifest::Piece;
use crate::pack::{Pack, Packer};
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::store::{Blob, BlobStore};
use crate::take::Options;
use crate::tree::{HardLinks, TreeEntry};
use crate::walk::join;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use towline_core::Error;
use towline_core::error::THREADS_HINT;

/// Files that a worker takes at once. Neighbours compress well together.
const BATCH_FILES: usize = 16;

/// A tree, and where and how its content is stored.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) root: &'a Path,
    pub(crate) store: &'a dyn BlobStore,
    pub(crate) options: &'a Options,
    pub(crate) progress: &'a Progress,
}

/// The files that were read, by their numbers among the entries.
#[derive(Default)]
pub(crate) struct Contents(Vec<(usize, Content)>);

impl Contents {
    /// Puts each content into its entry.
    pub(crate) fn fill(self, entries: &mut [TreeEntry]) {
        for (number, content) in self.0 {
            let entry = &mut entries[number];
            entry.is_unsteady = content.unsteady;
            entry.read_stamp = (!content.unsteady).then_some(content.stamp);
            entry.pieces = Some(content.pieces);
        }
    }
}

/// Everything that was to be read has been read, and everything new is in the store.
pub(crate) struct Ingested {
    pub(crate) contents: Contents,
    /// Numbers of files that were there during the walk and could not be read afterwards: removed
    /// meanwhile, or unreadable.
    pub(crate) gone: HashSet<usize>,
    /// Those of `gone` that this user may not read.
    pub(crate) unreadable: Vec<usize>,
    pub(crate) index: Index,
    /// Bytes that went to the store.
    pub(crate) stored: u64,
}

impl Ingested {
    pub(crate) fn files_read(&self) -> usize {
        self.contents.0.len() + self.gone.len()
    }
}

pub(crate) struct Ingest<'a> {
    task: Task<'a>,
    entries: &'a [TreeEntry],
    /// Numbers of the files to read.
    todo: Vec<usize>,
    /// Files that this user may not read are left out; otherwise they are an error.
    skips_unreadable: bool,
    /// The place in `todo` of the next file that no worker has taken.
    next: AtomicUsize,
    index: Mutex<Index>,
    /// Chunks that some worker has packed or is packing.
    claimed: Mutex<HashSet<Digest>>,
    /// The first failure; it stops every thread.
    problem: Mutex<Option<Problem>>,
    stored: AtomicU64,
}

/// The outcome of reading one file.
enum FileOutcome {
    Content(Content),
    Gone,
    Unreadable,
}

type FileResult = (usize, FileOutcome);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Ingest<'a> {
    /// Reads every file whose content is unknown or not in the index.
    pub(crate) fn new(task: Task<'a>, entries: &'a [TreeEntry], index: Index) -> Self {
        let is_stored = |pieces: &Vec<Piece>| {
            pieces.iter().all(|piece| match piece {
                Piece::Chunk { digest, .. } => index.has(digest),
                Piece::Hole { .. } => true,
            })
        };
        let todo: Vec<usize> = (0..entries.len())
            .filter(|number| {
                let entry = &entries[*number];
                entry.is_file() && !entry.pieces.as_ref().is_some_and(is_stored)
            })
            .collect();
        task.progress.expect(
            todo.len() as u64,
            todo.iter()
                .map(|number| entries[*number].found.stamp.size)
                .sum(),
        );
        Self {
            task,
            entries,
            todo,
            skips_unreadable: false,
            next: AtomicUsize::new(0),
            index: Mutex::new(index),
            claimed: Mutex::new(HashSet::new()),
            problem: Mutex::new(None),
            stored: AtomicU64::new(0),
        }
    }

    /// For a workspace: hard links are not read, and unreadable files are left out.
    pub(crate) fn for_workspace(mut self, hard_links: &HardLinks) -> Self {
        let entries = self.entries;
        self.todo
            .retain(|number| !hard_links.contains_key(&entries[*number].found.path));
        self.skips_unreadable = true;
        self
    }

    pub(crate) fn run(self) -> Result<Ingested> {
        let files = self.run_threads();
        if let Some(problem) = lock(&self.problem).take() {
            return Err(problem);
        }
        let mut index = self
            .index
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        index.save()?;
        let mut ingested = Ingested {
            contents: Contents::default(),
            gone: HashSet::new(),
            unreadable: Vec::new(),
            index,
            stored: self.stored.into_inner(),
        };
        for (number, outcome) in files {
            match outcome {
                FileOutcome::Content(content) => ingested.contents.0.push((number, content)),
                FileOutcome::Gone => drop(ingested.gone.insert(number)),
                FileOutcome::Unreadable => {
                    ingested.gone.insert(number);
                    ingested.unreadable.push(number);
                }
            }
        }
        Ok(ingested)
    }

    fn run_threads(&self) -> Vec<FileResult> {
        let workers = std::thread::available_parallelism()
            .map_or(1, |count| count.get().min(8))
            .min(self.todo.len().div_ceil(BATCH_FILES))
            .max(1);
        let (send, receive) = sync_channel::<Pack>(1);
        let receive = Mutex::new(receive);
        let mut files: Vec<FileResult> = Vec::new();
        std::thread::scope(|scope| {
            for number in 0..self.task.store.parallel().max(1) {
                let started =
                    std::thread::Builder::new().spawn_scoped(scope, || self.store_packs(&receive));
                // The workers need at least one thread that takes their packs.
                if let Err(error) = started
                    && number == 0
                {
                    return self.give_up(Problem::Store(Box::new(
                        Error::refused("no thread can be made")
                            .source_error(error)
                            .hint(THREADS_HINT),
                    )));
                }
            }
            let others: Vec<_> = (1..workers)
                .map_while(|_| {
                    let send = send.clone();
                    std::thread::Builder::new()
                        .spawn_scoped(scope, || self.read_files(send))
                        .ok()
                })
                .collect();
            files.extend(self.read_files(send));
            for other in others {
                files.extend(other.join().unwrap_or_default());
            }
        });
        files
    }

    fn has_failed(&self) -> bool {
        lock(&self.problem).is_some()
    }

    fn give_up(&self, problem: Problem) {
        lock(&self.problem).get_or_insert(problem);
    }

    /// Reads files until none is left.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the storing threads stop when the last sender is dropped"
    )]
    fn read_files(&self, send: SyncSender<Pack>) -> Vec<FileResult> {
        let mut files = Vec::new();
        let outcome = Packer::new(self.task.options.compression).and_then(|mut packer| {
            let mut buffer = Vec::new();
            while !self.has_failed() {
                let first = self.next.fetch_add(BATCH_FILES, Ordering::Relaxed);
                let Some(batch) = self
                    .todo
                    .get(first..self.todo.len().min(first + BATCH_FILES))
                    .filter(|batch| !batch.is_empty())
                else {
                    break;
                };
                for number in batch {
                    let outcome = self.read_file(*number, &mut packer, &mut buffer, &send)?;
                    files.push((*number, outcome));
                }
            }
            if let Some(pack) = packer.finish()? {
                let _ = send.send(pack);
            }
            Ok(())
        });
        if let Err(problem) = outcome {
            self.give_up(problem);
        }
        files
    }

    fn read_file(
        &self,
        number: usize,
        packer: &mut Packer,
        buffer: &mut Vec<u8>,
        send: &SyncSender<Pack>,
    ) -> Result<FileOutcome> {
        let path = join(self.task.root, &self.entries[number].found.path);
        let mut packing_problem = None;
        let content = content::read(&path, buffer, &mut |digest, chunk| {
            self.task.progress.add_bytes(chunk.len() as u64);
            if lock(&self.index).has(&digest) || !lock(&self.claimed).insert(digest) {
                return Ok(());
            }
            match packer.add(digest, chunk) {
                Ok(Some(pack)) => send
                    .send(pack)
                    .map_err(|_| io::Error::other("the store failed")),
                Ok(None) => Ok(()),
                Err(problem) => {
                    packing_problem = Some(problem);
                    Err(io::Error::other("packing failed"))
                }
            }
        });
        self.task.progress.add_file();
        let error = match content {
            Ok(content) => return Ok(FileOutcome::Content(content)),
            Err(error) => error,
        };
        if let Some(problem) = packing_problem {
            return Err(problem);
        }
        // Editors, compilers and checkpoints make and remove files all the time.
        if is_gone(&error) {
            return Ok(FileOutcome::Gone);
        }
        if self.skips_unreadable && error.kind() == io::ErrorKind::PermissionDenied {
            return Ok(FileOutcome::Unreadable);
        }
        Err(Problem::file(&path, "read", error))
    }

    fn store_packs(&self, receive: &Mutex<Receiver<Pack>>) {
        loop {
            let next = lock(receive).recv();
            let Ok(mut pack) = next else { return };
            if self.has_failed() {
                continue;
            }
            if lock(&self.index).is_pending_deletion(&pack.digest) {
                // A stored pack of that name may be deleted at any moment.
                pack.rename(self.task.options.now);
            }
            let stored = self
                .task
                .store
                .put(&Blob::Pack(pack.digest), &pack.bytes)
                .and_then(|()| {
                    self.stored
                        .fetch_add(pack.bytes.len() as u64, Ordering::Relaxed);
                    let mut index = lock(&self.index);
                    index.add(&pack);
                    // Saved at once, so that after a kill the next run does not store it again.
                    index.save()
                });
            if let Err(problem) = stored {
                self.give_up(problem);
            }
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [
        rustix::io::Errno::NOENT,
        rustix::io::Errno::NOTDIR,
        rustix::io::Errno::LOOP,
    ]
    .map(rustix::io::Errno::raw_os_error);
    error.kind() == io::ErrorKind::NotFound
        || error
            .raw_os_error()
            .is_some_and(|code| gone.contains(&code))
}
