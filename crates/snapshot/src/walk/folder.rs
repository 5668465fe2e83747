//! One folder of a walk.

use super::{Found, FoundKind, Job, LeftOut, Stamp, Walk, Walked};
use crate::continues::MARK_FILE_PREFIX;
use crate::manifest::Flavor;
use crate::problem::{Problem, Result};
use crate::rules::{Chain, Why};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

impl Walk<'_> {
    /// Judges the entries of one folder. Returns the folders to walk next.
    pub(super) fn walk_folder(
        &self,
        job: &Job,
        part: &mut Walked,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Vec<Job>> {
        let Some(folder) = self.open(job, part)? else {
            return Ok(Vec::new());
        };
        let names = names(&folder, job, buffer)?;
        let chain = self.chain(job, &names)?;
        let mut jobs = Vec::new();
        for (name, kind) in names {
            let path = job.path.join(OsStr::from_bytes(&name));
            let stat = rustix::fs::statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW);
            let stat = match stat {
                Ok(stat) => stat,
                // Removed since the listing: it is not part of the tree.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(Problem::file(&path, "read", error)),
            };
            let kind = if kind == FileType::Unknown {
                FileType::from_raw_mode(stat.st_mode)
            } else {
                kind
            };
            let below: Box<[u8]> = if job.below.is_empty() {
                name.as_slice().into()
            } else {
                [job.below.as_slice(), b"/", &name].concat().into()
            };
            let is_folder = kind == FileType::Directory;
            let why = self
                .rules
                .judge(&path, &name, is_folder, chain.as_ref())
                .or_else(|| special(kind).map(Why::Special))
                .or_else(|| self.outside(&folder, job, &name, kind));
            if let Some(why) = why {
                part.left_out.push(LeftOut {
                    path: below,
                    is_folder,
                    why,
                });
                continue;
            }
            part.found
                .push(make(&below, kind, &stat, self.rules.flavor()));
            if is_folder {
                jobs.push(Job {
                    path,
                    below: below.into_vec(),
                    chain: chain.clone(),
                });
            }
        }
        Ok(jobs)
    }

    /// `None` if the folder is gone, or may not be read and is left out.
    fn open(&self, job: &Job, part: &mut Walked) -> Result<Option<OwnedFd>> {
        let is_root = job.below.is_empty();
        match open_folder(&job.path) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::ACCESS) if self.rules.flavor() == Flavor::Workspace && !is_root => {
                part.left_out.push(LeftOut {
                    path: job.below.clone().into(),
                    is_folder: true,
                    why: Why::Unreadable,
                });
                Ok(None)
            }
            // Removed or replaced since the listing: it is not part of the tree.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !is_root => Ok(None),
            Err(error) => Err(Problem::file(&job.path, "read", error)),
        }
    }

    /// The ignore rules in force inside a folder with these names.
    fn chain(&self, job: &Job, names: &[(Vec<u8>, FileType)]) -> Result<Option<Arc<Chain>>> {
        let file_name = self.rules.file_name();
        let entered = if names.iter().any(|(name, _)| name == file_name.as_bytes()) {
            self.rules
                .enter(&job.path, job.chain.as_ref())
                .map_err(|error| Problem::file(&job.path.join(file_name), "read", error))?
        } else {
            None
        };
        Ok(entered.or_else(|| job.chain.clone()))
    }

    fn outside(&self, folder: &OwnedFd, job: &Job, name: &[u8], kind: FileType) -> Option<Why> {
        (self.rules.flavor() == Flavor::Code
            && kind == FileType::Symlink
            && leads_outside(folder, job, name))
        .then_some(Why::Outside)
    }
}

fn names(
    folder: &OwnedFd,
    job: &Job,
    buffer: &mut [MaybeUninit<u8>],
) -> Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    let mut listing = RawDir::new(folder, buffer);
    while let Some(entry) = listing.next() {
        let entry = entry.map_err(|error| Problem::file(&job.path, "read", error))?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && !name.starts_with(MARK_FILE_PREFIX.as_bytes()) {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(
        rustix::fs::CWD,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Whether the relative target of a link climbs above the root.
fn leads_outside(folder: &OwnedFd, job: &Job, name: &[u8]) -> bool {
    let Ok(target) = rustix::fs::readlinkat(folder, name, Vec::new()) else {
        return false;
    };
    let target = target.as_bytes();
    if target.starts_with(b"/") {
        return false;
    }
    let mut depth = job
        .below
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .count();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn special(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile | FileType::Directory | FileType::Symlink => None,
        FileType::Fifo => Some("pipe"),
        FileType::Socket => Some("socket"),
        _ => Some("device"),
    }
}

fn make(path: &[u8], kind: FileType, stat: &Stat, flavor: Flavor) -> Found {
    let kind = match kind {
        FileType::Directory => FoundKind::Folder,
        FileType::Symlink => FoundKind::Link,
        _ => FoundKind::File,
    };
    let stamp = Stamp::of(stat);
    let on_disk = u64::try_from(stat.st_blocks)
        .unwrap_or(0)
        .saturating_mul(512);
    let mode = stat.st_mode & flavor.mode_bits(kind == FoundKind::Folder);
    let has_hard_links = kind == FoundKind::File && stat.st_nlink > 1;
    Found {
        path: path.into(),
        kind,
        mode,
        sparse: on_disk + 4096 < stamp.size,
        stamp,
        has_hard_links,
    }
}
