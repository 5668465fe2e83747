//! Laying a snapshot out: a new folder that holds exactly the tree, every byte verified. Links are
//! made last, so that nothing is ever written through one.

mod fill;

use crate::manifest::{Entry, Flavor, Kind, Piece, Top};
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::root::Root;
use crate::store::BlobStore;
use crate::whole::WholeFiles;
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, fchmod, futimens, linkat, mkdirat, openat,
    symlinkat, utimensat,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use towline_host::filesystem::remove_tree;

/// Lays `root` out as the folder `target`, which must not exist. After an error nothing is left.
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
    let cloned = layout.make_large_files()?;
    let fills = layout.plan(&cloned)?;
    layout.fill_all(&fills)?;
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

/// Whether a file has exactly one chunk; the thread that reads the chunk makes the file.
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

/// Sets mode and time, after everything else was done to a file.
fn seal(file: impl AsFd, entry: &Entry) -> rustix::io::Result<()> {
    fchmod(&file, Mode::from_raw_mode(entry.mode))?;
    futimens(&file, &times(entry.modified))
}

impl Layout<'_> {
    fn entries(&self) -> std::slice::Iter<'_, Entry> {
        self.root.manifest.entries.iter()
    }

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

    /// Makes empty files, and files of many pieces at their full length. Returns the numbers of
    /// files that could be cloned whole.
    fn make_large_files(&self) -> Result<HashSet<usize>> {
        let mut cloned = HashSet::new();
        let is_large = |entry: &Entry| matches!(entry.kind, Kind::File(_)) && !is_simple(entry);
        for (number, entry) in self
            .root
            .manifest
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| is_large(entry))
        {
            let failed = |error: Errno| self.problem(&entry.path, "made", error);
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

    /// Sets modes and times, and makes links; folders come last, from the innermost out.
    fn finish(&self, cloned: &HashSet<usize>) -> Result<()> {
        self.finish_large_files(cloned)?;
        self.make_hard_links()?;
        self.make_links()?;
        self.finish_folders()
    }

    fn finish_large_files(&self, cloned: &HashSet<usize>) -> Result<()> {
        let is_large = |entry: &Entry| {
            matches!(&entry.kind, Kind::File(pieces) if !pieces.is_empty()) && !is_simple(entry)
        };
        for (number, entry) in self.entries().enumerate() {
            if !is_large(entry) {
                continue;
            }
            let failed = |error: Errno| self.problem(&entry.path, "written", error);
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(&self.folder, &*entry.path, flags, Mode::empty()).map_err(failed)?;
            if let Some(whole) = self.whole.as_ref().filter(|_| !cloned.contains(&number)) {
                whole.keep(&entry.kind, &file);
            }
            seal(&file, entry).map_err(failed)?;
            self.progress.add_file();
        }
        Ok(())
    }

    fn make_hard_links(&self) -> Result<()> {
        for entry in self.entries() {
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
        Ok(())
    }

    fn make_links(&self) -> Result<()> {
        for entry in self.entries() {
            if let Kind::Link(target) = &entry.kind {
                let failed = |error: Errno| self.problem(&entry.path, "made", error);
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
        Ok(())
    }

    fn finish_folders(&self) -> Result<()> {
        for entry in self
            .entries()
            .rev()
            .filter(|entry| entry.kind == Kind::Folder)
        {
            let failed = |error: Errno| self.problem(&entry.path, "made", error);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder =
                openat(&self.folder, &*entry.path, flags, Mode::empty()).map_err(failed)?;
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
