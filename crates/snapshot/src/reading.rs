//! Reading what has to be read of a tree, and keeping what is new of it: workers read and pack,
//! keepers store.

use crate::content::{self, Content};
use crate::digest::Digest;
use crate::index::Index;
use crate::manifest::Piece;
use crate::pack::{Pack, Packer};
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::store::{Blob, BlobStore};
use crate::take::Options;
use crate::walk::{Found, FoundKind, Stamp, join};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use towline_core::Error;
use towline_core::error::THREADS_HINT;

/// Files that a worker takes at once. Neighbours compress well together.
const BATCH_FILES: usize = 16;

/// What was read, settled and stored.
pub(crate) struct Read {
    pub(crate) pieces: Vec<Option<Vec<Piece>>>,
    /// Of the files that were read, as they were then.
    pub(crate) stamps: Vec<Option<Stamp>>,
    /// Files that were there when the tree was walked, and not when they were to be read.
    pub(crate) gone: HashSet<usize>,
    /// Files that we may not read.
    pub(crate) unreadable: Vec<usize>,
    pub(crate) index: Index,
    pub(crate) stored: u64,
    pub(crate) unsteady: Vec<String>,
    pub(crate) read: usize,
}

pub(crate) struct Reading<'a> {
    root: &'a Path,
    found: &'a [Found],
    store: &'a dyn BlobStore,
    options: &'a Options,
    progress: &'a Progress,
    /// Files to be read, by their place in `found`.
    todo: Vec<usize>,
    /// What we may not read is left out, and no reason to give up.
    is_tolerant: bool,
    next: AtomicUsize,
    recalled: Vec<Option<Vec<Piece>>>,
    index: Mutex<Index>,
    /// Chunks that somebody is keeping already.
    claimed: Mutex<HashSet<Digest>>,
    problem: Mutex<Option<Problem>>,
}

/// What came of a file that was to be read.
enum Outcome {
    Read(Content),
    Gone,
    Unreadable,
}

type FileRead = (usize, Outcome);

impl<'a> Reading<'a> {
    pub(crate) fn new(
        root: &'a Path,
        found: &'a [Found],
        recalled: Vec<Option<Vec<Piece>>>,
        store: &'a dyn BlobStore,
        index: Index,
        options: &'a Options,
        progress: &'a Progress,
    ) -> Self {
        let is_kept = |pieces: &Vec<Piece>| {
            pieces.iter().all(|piece| match piece {
                Piece::Chunk { digest, .. } => index.has(digest),
                Piece::Hole { .. } => true,
            })
        };
        let todo: Vec<usize> = (0..found.len())
            .filter(|number| {
                found[*number].kind == FoundKind::File
                    && !recalled[*number].as_ref().is_some_and(is_kept)
            })
            .collect();
        progress.expect(
            todo.len() as u64,
            todo.iter().map(|number| found[*number].stamp.size).sum(),
        );
        Self {
            root,
            found,
            store,
            options,
            progress,
            todo,
            is_tolerant: false,
            next: AtomicUsize::new(0),
            recalled,
            index: Mutex::new(index),
            claimed: Mutex::new(HashSet::new()),
            problem: Mutex::new(None),
        }
    }

    /// Of a workspace: other names of a file are not read, and what may not be read is left out.
    pub(crate) fn of_workspace(mut self, hard_links: &HashMap<usize, usize>) -> Self {
        self.todo.retain(|number| !hard_links.contains_key(number));
        self.is_tolerant = true;
        self
    }

    pub(crate) fn run(self) -> Result<Read> {
        let workers = std::thread::available_parallelism()
            .map_or(1, |count| count.get().min(8))
            .min(self.todo.len().div_ceil(BATCH_FILES))
            .max(1);
        let keepers = self.store.parallel().max(1);
        let (send, receive) = sync_channel::<Pack>(1);
        let receive = Mutex::new(receive);
        let stored = Mutex::new(0u64);
        let mut files: Vec<FileRead> = Vec::new();
        std::thread::scope(|scope| {
            for number in 0..keepers {
                // One is needed: it takes what the others make.
                if let Err(error) = std::thread::Builder::new()
                    .spawn_scoped(scope, || self.keep_packs(&receive, &stored))
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
                        .spawn_scoped(scope, || self.work(send))
                        .ok()
                })
                .collect();
            files.extend(self.work(send));
            for other in others {
                files.extend(other.join().unwrap_or_default());
            }
        });
        let Self {
            found,
            recalled,
            index,
            problem,
            ..
        } = self;
        if let Some(problem) = problem.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(problem);
        }
        let mut index = index.into_inner().unwrap_or_else(PoisonError::into_inner);
        index.save()?;
        let mut read = Read {
            pieces: recalled,
            stamps: vec![None; found.len()],
            gone: HashSet::new(),
            unreadable: Vec::new(),
            index,
            stored: stored.into_inner().unwrap_or_else(PoisonError::into_inner),
            unsteady: Vec::new(),
            read: files.len(),
        };
        for (number, outcome) in files {
            let content = match outcome {
                Outcome::Read(content) => content,
                Outcome::Gone => {
                    read.gone.insert(number);
                    continue;
                }
                Outcome::Unreadable => {
                    read.gone.insert(number);
                    read.unreadable.push(number);
                    continue;
                }
            };
            if content.unsteady {
                read.unsteady
                    .push(String::from_utf8_lossy(&found[number].path).into_owned());
            } else {
                read.stamps[number] = Some(content.stamp);
            }
            read.pieces[number] = Some(content.pieces);
        }
        Ok(read)
    }

    fn is_over(&self) -> bool {
        self.problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn give_up(&self, problem: Problem) {
        self.problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(problem);
    }

    /// Reads files until there are none left.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the keepers stop when the last sender is dropped"
    )]
    fn work(&self, send: SyncSender<Pack>) -> Vec<FileRead> {
        let mut files = Vec::new();
        let outcome = Packer::new(self.options.compression).and_then(|mut packer| {
            let mut buffer = Vec::new();
            while !self.is_over() {
                let first = self.next.fetch_add(BATCH_FILES, Ordering::Relaxed);
                let Some(batch) = self
                    .todo
                    .get(first..self.todo.len().min(first + BATCH_FILES))
                    .filter(|batch| !batch.is_empty())
                else {
                    break;
                };
                for number in batch {
                    files.push((
                        *number,
                        self.read_file(*number, &mut packer, &mut buffer, &send)?,
                    ));
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
    ) -> Result<Outcome> {
        let path = join(self.root, &self.found[number].path);
        let mut problem = None;
        let read = content::read(&path, buffer, &mut |digest, chunk| {
            self.progress.add_bytes(chunk.len() as u64);
            if self
                .index
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .has(&digest)
                || !self
                    .claimed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(digest)
            {
                return Ok(());
            }
            match packer.add(digest, chunk) {
                Ok(Some(pack)) => send
                    .send(pack)
                    .map_err(|_| io::Error::other("the store failed")),
                Ok(None) => Ok(()),
                Err(error) => {
                    problem = Some(error);
                    Err(io::Error::other("packing failed"))
                }
            }
        });
        self.progress.add_file();
        match read {
            Ok(content) => Ok(Outcome::Read(content)),
            // Editors, compilers and checkpoints make and remove files all the time.
            Err(error) if problem.is_none() && is_gone(&error) => Ok(Outcome::Gone),
            Err(error)
                if problem.is_none()
                    && self.is_tolerant
                    && error.kind() == io::ErrorKind::PermissionDenied =>
            {
                Ok(Outcome::Unreadable)
            }
            Err(error) => Err(problem.unwrap_or_else(|| Problem::file(&path, "read", error))),
        }
    }

    fn keep_packs(&self, receive: &Mutex<Receiver<Pack>>, stored: &Mutex<u64>) {
        loop {
            let next = receive
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok(mut pack) = next else { return };
            if self.is_over() {
                continue;
            }
            if self
                .index
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_pending_deletion(&pack.digest)
            {
                // One of that name may be deleted any moment.
                pack.rename(self.options.now);
            }
            let kept = self
                .store
                .put(&Blob::Pack(pack.digest), &pack.bytes)
                .and_then(|()| {
                    *stored.lock().unwrap_or_else(PoisonError::into_inner) +=
                        pack.bytes.len() as u64;
                    let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
                    index.add(&pack);
                    // At once: whoever goes on after a kill does not store it again.
                    index.save()
                });
            if let Err(problem) = kept {
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
