//! Laying a snapshot out: a fresh folder that holds exactly the tree, every byte of it verified.
//! Links are made last, so that nothing is ever written through one.

use crate::digest::Digest;
use crate::manifest::{Entry, Flavor, Kind, Piece, Top};
use crate::pack::unpack;
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::root::Root;
use crate::store::{Blob, BlobStore};
use crate::whole::WholeFiles;
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, fchmod, futimens, linkat, mkdirat, openat,
    symlinkat, utimensat,
};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use towline_host::filesystem::remove_tree;

/// One place of a file that a part of a frame fills.
struct Use {
    entry: usize,
    /// In the file.
    at: u64,
    /// In the frame.
    offset: usize,
    length: usize,
    digest: Digest,
}

/// Lays `root` out as the folder `target`, which must not be there. On any error nothing is left
/// under that name.
pub fn lay_out(
    root: &Root,
    store: &dyn BlobStore,
    target: &Path,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<()> {
    root.manifest.validate()?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let part = target.with_file_name(format!(".{name}.part-{}", std::process::id()));
    let failed = |error: io::Error| Problem::file(&part, "made", error);
    let _ = remove_tree(&part);
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&part)
        .map_err(failed)?;
    let outcome = fill(root, store, &part, progress, stop).and_then(|()| {
        rustix::fs::renameat_with(
            rustix::fs::CWD,
            &part,
            rustix::fs::CWD,
            target,
            rustix::fs::RenameFlags::NOREPLACE,
        )
        .map_err(|error| Problem::file(target, "made", error))
    });
    if outcome.is_err() {
        let _ = remove_tree(&part);
    }
    outcome
}

fn fill(
    root: &Root,
    store: &dyn BlobStore,
    target: &Path,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<()> {
    check_room(root, target)?;
    let folder = openat(
        rustix::fs::CWD,
        target,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| Problem::file(target, "read", error))?;
    let entries = &root.manifest.entries;
    progress.expect(
        root.manifest.files() as u64,
        entries
            .iter()
            .flat_map(Entry::chunks)
            .map(|(_, length)| length)
            .sum(),
    );
    let whole = store.whole_files().map(WholeFiles::new);
    let layout = Layout {
        root,
        store,
        target,
        folder,
        progress,
        stop,
        whole,
        next: AtomicUsize::new(0),
        problem: Mutex::new(None),
    };
    layout.make_folders()?;
    let cloned = layout.make_pieced()?;
    let uses = layout.plan(&cloned)?;
    layout.fill_all(&uses)?;
    layout.finish(&cloned)
}

fn check_room(root: &Root, target: &Path) -> Result<()> {
    let needed: u64 = root
        .manifest
        .entries
        .iter()
        .flat_map(Entry::chunks)
        .map(|(_, length)| length)
        .fold(0, u64::saturating_add);
    let room =
        rustix::fs::statvfs(target).map_err(|error| Problem::file(target, "looked at", error))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if needed > free {
        Err(Problem::NoRoom {
            needed,
            free,
            at: target.to_owned(),
        })
    } else {
        Ok(())
    }
}

struct Layout<'a> {
    root: &'a Root,
    store: &'a dyn BlobStore,
    target: &'a Path,
    folder: OwnedFd,
    progress: &'a Progress,
    stop: &'a AtomicBool,
    whole: Option<WholeFiles>,
    next: AtomicUsize,
    problem: Mutex<Option<Problem>>,
}

/// Made by whoever reads its one chunk.
fn is_simple(entry: &Entry) -> bool {
    matches!(&entry.kind, Kind::File(pieces) if matches!(pieces.as_slice(), [Piece::Chunk { .. }]))
}

const fn times(modified: i64) -> Timestamps {
    let time = Timespec {
        tv_sec: modified.div_euclid(1_000_000_000),
        tv_nsec: modified.rem_euclid(1_000_000_000),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// Its mode and its time: the last that is done to it.
fn seal(file: impl AsFd, entry: &Entry) -> rustix::io::Result<()> {
    fchmod(&file, Mode::from_raw_mode(entry.mode))?;
    futimens(&file, &times(entry.modified))
}

impl Layout<'_> {
    fn problem(&self, path: &[u8], doing: &'static str, error: impl Into<io::Error>) -> Problem {
        let error = error.into();
        if error.kind() == io::ErrorKind::AlreadyExists {
            return Problem::hostile(format!(
                "`{}` and another name of it are one name here",
                String::from_utf8_lossy(path)
            ));
        }
        Problem::file(&crate::walk::join(self.target, path), doing, error)
    }

    fn make_folders(&self) -> Result<()> {
        for entry in self
            .root
            .manifest
            .entries
            .iter()
            .filter(|entry| entry.kind == Kind::Folder)
        {
            mkdirat(&self.folder, &*entry.path, Mode::from_raw_mode(0o700))
                .map_err(|error| self.problem(&entry.path, "made", error))?;
        }
        Ok(())
    }

    fn create(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        openat(
            &self.folder,
            path,
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o600),
        )
    }

    /// Empty files, and those of many pieces at their full length; the numbers of those that could
    /// be cloned whole.
    fn make_pieced(&self) -> Result<HashSet<usize>> {
        let mut cloned = HashSet::new();
        let pieced = |entry: &Entry| matches!(entry.kind, Kind::File(_)) && !is_simple(entry);
        for (number, entry) in self
            .root
            .manifest
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| pieced(entry))
        {
            let failed = |error: rustix::io::Errno| self.problem(&entry.path, "made", error);
            let file = self.create(&entry.path).map_err(failed)?;
            let size = entry.size();
            if self
                .whole
                .as_ref()
                .is_some_and(|whole| whole.fill(&entry.kind, &file))
            {
                cloned.insert(number);
                self.progress.add_bytes(size);
            } else if size > 0 {
                rustix::fs::ftruncate(&file, size).map_err(failed)?;
            } else {
                seal(&file, entry).map_err(failed)?;
                self.progress.add_file();
            }
        }
        Ok(cloned)
    }

    /// For each frame, what it fills.
    fn plan(&self, cloned: &HashSet<usize>) -> Result<Vec<Vec<Use>>> {
        let places = self.root.chunks();
        let mut uses: Vec<Vec<Use>> = self.root.frames.iter().map(|_| Vec::new()).collect();
        for (number, entry) in self
            .root
            .manifest
            .entries
            .iter()
            .enumerate()
            .filter(|(number, _)| !cloned.contains(number))
        {
            let Kind::File(pieces) = &entry.kind else {
                continue;
            };
            let mut at = 0;
            for piece in pieces {
                if let Piece::Chunk { digest, length } = piece {
                    let missing = || Problem::hostile("content without a place");
                    let (place, _) = places.get(digest).ok_or_else(missing)?;
                    let length = usize::try_from(*length).map_err(|_| missing())?;
                    let fits = uses.get_mut(place.frame as usize).ok_or_else(missing)?;
                    fits.push(Use {
                        entry: number,
                        at,
                        offset: place.offset as usize,
                        length,
                        digest: *digest,
                    });
                }
                at += piece.length();
            }
        }
        Ok(uses)
    }

    fn fill_all(&self, uses: &[Vec<Use>]) -> Result<()> {
        let threads = std::thread::available_parallelism()
            .map_or(1, |count| count.get().min(8))
            .max(self.store.parallel())
            .min(uses.len())
            .max(1);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // One that cannot be made is no loss but of time: this one does what is left.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || self.work(uses));
            }
            self.work(uses);
        });
        match self
            .problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    fn work(&self, uses: &[Vec<Use>]) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(fills) = uses.get(number) else {
                return;
            };
            if self.stop.load(Ordering::Relaxed) {
                self.give_up(Problem::Store(Box::new(towline_core::Error::refused(
                    "the layout was stopped",
                ))));
            }
            if self
                .problem
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some()
            {
                return;
            }
            if let Err(problem) = self.fill_from(number, fills) {
                self.give_up(problem);
            }
        }
    }

    fn give_up(&self, problem: Problem) {
        self.problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(problem);
    }

    fn fill_from(&self, number: usize, fills: &[Use]) -> Result<()> {
        let (pack, frame) = &self.root.frames[number];
        let pack = self
            .root
            .packs
            .get(*pack as usize)
            .ok_or_else(|| Problem::hostile("a part of no pack"))?;
        let stored =
            self.store
                .get_range(&Blob::Pack(*pack), frame.offset, frame.stored as usize)?;
        let raw = unpack(frame, &stored, pack)?;
        for fill in fills {
            let entry = &self.root.manifest.entries[fill.entry];
            let bytes = raw
                .get(fill.offset..fill.offset + fill.length)
                .filter(|bytes| Digest::of(bytes) == fill.digest);
            let bytes = bytes.ok_or_else(|| {
                Problem::damaged(
                    format!("`{}`", String::from_utf8_lossy(&entry.path)),
                    "its content is not what it was",
                )
            })?;
            self.write(entry, fill.at, bytes)
                .map_err(|error| self.problem(&entry.path, "written", error))?;
            self.progress.add_bytes(fill.length as u64);
        }
        Ok(())
    }

    fn write(&self, entry: &Entry, at: u64, bytes: &[u8]) -> io::Result<()> {
        if is_simple(entry) {
            let file = File::from(self.create(&entry.path)?);
            file.write_all_at(bytes, 0)?;
            seal(&file, entry)?;
            self.progress.add_file();
            return Ok(());
        }
        let file = openat(
            &self.folder,
            &*entry.path,
            OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        File::from(file).write_all_at(bytes, at)
    }

    /// Modes and times of large files, links, then folders from the innermost out.
    fn finish(&self, cloned: &HashSet<usize>) -> Result<()> {
        let entries = &self.root.manifest.entries;
        let pieced = |entry: &Entry| {
            matches!(&entry.kind, Kind::File(pieces) if !pieces.is_empty()) && !is_simple(entry)
        };
        for (number, entry) in entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| pieced(entry))
        {
            let failed = |error: rustix::io::Errno| self.problem(&entry.path, "written", error);
            let file = openat(
                &self.folder,
                &*entry.path,
                OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(failed)?;
            if let Some(whole) = self.whole.as_ref().filter(|_| !cloned.contains(&number)) {
                whole.keep(&entry.kind, &file);
            }
            seal(&file, entry).map_err(failed)?;
            self.progress.add_file();
        }
        for entry in entries {
            if let Kind::Same(first) = &entry.kind {
                linkat(
                    &self.folder,
                    &**first,
                    &self.folder,
                    &*entry.path,
                    AtFlags::empty(),
                )
                .map_err(|error| self.problem(&entry.path, "made", error))?;
                self.progress.add_file();
            }
        }
        for entry in entries {
            if let Kind::Link(target) = &entry.kind {
                let failed = |error: rustix::io::Errno| self.problem(&entry.path, "made", error);
                symlinkat(&**target, &self.folder, &*entry.path).map_err(failed)?;
                utimensat(
                    &self.folder,
                    &*entry.path,
                    &times(entry.modified),
                    AtFlags::SYMLINK_NOFOLLOW,
                )
                .map_err(failed)?;
            }
        }
        for entry in entries
            .iter()
            .rev()
            .filter(|entry| entry.kind == Kind::Folder)
        {
            let failed = |error: rustix::io::Errno| self.problem(&entry.path, "made", error);
            let folder = openat(
                &self.folder,
                &*entry.path,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(failed)?;
            seal(&folder, entry).map_err(failed)?;
        }
        if self.root.manifest.flavor == Flavor::Workspace {
            let Top { mode, modified } = self.root.manifest.top;
            fchmod(&self.folder, Mode::from_raw_mode(mode))
                .and_then(|()| futimens(&self.folder, &times(modified)))
                .map_err(|error| self.problem(b".", "made", error))?;
        }
        Ok(())
    }
}
