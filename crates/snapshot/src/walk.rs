//! The tree as it is now: every entry that travels, and what was left out and why. Nothing is read
//! but folders and ignore files.

use crate::manifest::Flavor;
use crate::problem::{Problem, Result};
use crate::rules::{Chain, Rules, Why};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

/// One entry that travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Below the root.
    pub path: Box<[u8]>,
    pub kind: FoundKind,
    pub mode: u32,
    pub stamp: Stamp,
    /// Bytes on disk are fewer than its size says.
    pub sparse: bool,
    /// A file that has other names too.
    pub has_hard_links: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundKind {
    Folder,
    File,
    Link,
}

/// What tells a changed file from an unchanged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
    /// The inode's own time, which nobody can set back.
    pub changed: i64,
    pub inode: u64,
    pub device: u64,
}

impl Stamp {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "the widths differ between machines"
    )]
    pub fn of(stat: &Stat) -> Self {
        let nanos = |seconds: i64, nanos: u64| {
            seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(nanos as i64)
        };
        Self {
            size: stat.st_size as u64,
            modified: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
        }
    }
}

/// Something that does not travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: Box<[u8]>,
    pub is_folder: bool,
    pub why: Why,
}

/// How much of a tree may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub files: usize,
    pub bytes: u64,
}

impl Limits {
    pub const fn none() -> Self {
        Self {
            files: usize::MAX,
            bytes: u64::MAX,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// Sorted by path.
    pub found: Vec<Found>,
    /// Sorted by path; only the topmost of each.
    pub left_out: Vec<LeftOut>,
    /// The walk was given up: there is more than this.
    pub cut_short: bool,
}

impl Walked {
    pub fn files(&self) -> usize {
        self.found
            .iter()
            .filter(|found| found.kind == FoundKind::File)
            .count()
    }
    pub fn bytes(&self) -> u64 {
        self.found
            .iter()
            .filter(|found| found.kind == FoundKind::File)
            .map(|found| found.stamp.size)
            .sum()
    }

    /// The folders directly below the root that hold most, largest first: files, bytes, name.
    pub fn largest(&self) -> Vec<(usize, u64, String)> {
        let mut sums: std::collections::BTreeMap<&[u8], (usize, u64)> =
            std::collections::BTreeMap::new();
        for found in self
            .found
            .iter()
            .filter(|found| found.kind == FoundKind::File)
        {
            let top = found
                .path
                .iter()
                .position(|byte| *byte == b'/')
                .map_or(&b"."[..], |at| &found.path[..at]);
            let sum = sums.entry(top).or_default();
            sum.0 += 1;
            sum.1 += found.stamp.size;
        }
        let mut largest: Vec<_> = sums
            .into_iter()
            .map(|(name, (files, bytes))| {
                (files, bytes, String::from_utf8_lossy(name).into_owned())
            })
            .collect();
        largest.sort_by_key(|(files, bytes, _)| std::cmp::Reverse(bytes + *files as u64 * 4096));
        largest
    }
}

/// A folder still to be read. It is opened when its turn comes: many may wait.
struct Job {
    path: PathBuf,
    below: Vec<u8>,
    chain: Option<Arc<Chain>>,
}

#[derive(Default)]
struct Shared {
    jobs: Vec<Job>,
    busy: usize,
    files: usize,
    bytes: u64,
    problem: Option<Problem>,
    stop: bool,
}

struct Walk<'a> {
    rules: &'a Rules,
    limits: Limits,
    shared: Mutex<Shared>,
    wake: Condvar,
}

/// Walks `root`. Past the limits it goes on long enough to say what is large, then gives up.
pub fn walk(root: &Path, rules: &Rules, limits: Limits) -> Result<Walked> {
    let job = Job {
        path: root.to_owned(),
        below: Vec::new(),
        chain: rules.above().cloned(),
    };
    let walk = Walk {
        rules,
        limits,
        shared: Mutex::new(Shared {
            jobs: vec![job],
            ..Shared::default()
        }),
        wake: Condvar::new(),
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let mut walked = Walked::default();
    std::thread::scope(|scope| {
        // Where no more threads can be made, those that are there do it all.
        let others: Vec<_> = (1..threads)
            .map_while(|_| {
                std::thread::Builder::new()
                    .spawn_scoped(scope, || walk.work())
                    .ok()
            })
            .collect();
        let mut parts = vec![walk.work()];
        parts.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
        for part in parts {
            walked.found.extend(part.found);
            walked.left_out.extend(part.left_out);
        }
    });
    let shared = walk
        .shared
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(problem) = shared.problem {
        return Err(problem);
    }
    walked.cut_short = shared.stop;
    walked.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.left_out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(walked)
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(
        rustix::fs::CWD,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

impl Walk<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn work(&self) -> Walked {
        let mut part = Walked::default();
        let mut buffer = vec![MaybeUninit::uninit(); 32 << 10];
        loop {
            let job = {
                let mut shared = self.lock();
                loop {
                    if shared.stop || shared.problem.is_some() {
                        return part;
                    }
                    if let Some(job) = shared.jobs.pop() {
                        shared.busy += 1;
                        break job;
                    }
                    if shared.busy == 0 {
                        return part;
                    }
                    shared = self
                        .wake
                        .wait(shared)
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            };
            let before = (part.found.len(), part.left_out.len());
            let outcome = self.read(&job, &mut part, &mut buffer);
            let (mut files, mut bytes) = (0, 0);
            for found in part.found[before.0..]
                .iter()
                .filter(|found| found.kind == FoundKind::File)
            {
                files += 1;
                bytes += found.stamp.size;
            }
            let mut shared = self.lock();
            shared.busy -= 1;
            match outcome {
                Ok(jobs) => shared.jobs.extend(jobs),
                Err(problem) => shared.problem = Some(problem),
            }
            shared.files += files;
            shared.bytes = shared.bytes.saturating_add(bytes);
            // Four times over, the largest folders are known well enough.
            shared.stop |=
                shared.files / 4 >= self.limits.files || shared.bytes / 4 >= self.limits.bytes;
            self.wake.notify_all();
        }
    }

    /// One folder: its entries judged, its folders to be read next.
    fn read(
        &self,
        job: &Job,
        part: &mut Walked,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Vec<Job>> {
        let fail = |path: &Path, error| Problem::file(path, "read", error);
        let folder =
            match open_folder(&job.path) {
                Ok(folder) => folder,
                Err(rustix::io::Errno::ACCESS)
                    if self.rules.flavor() == Flavor::Workspace && !job.below.is_empty() =>
                {
                    part.left_out.push(LeftOut {
                        path: job.below.clone().into(),
                        is_folder: true,
                        why: Why::Unreadable,
                    });
                    return Ok(Vec::new());
                }
                // Gone since it was listed, or no folder any more: it is not part of the tree.
                Err(
                    rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP,
                ) if !job.below.is_empty() => return Ok(Vec::new()),
                Err(error) => return Err(fail(&job.path, error)),
            };
        let mut names: Vec<(Vec<u8>, FileType)> = Vec::new();
        let mut listing = RawDir::new(&folder, buffer);
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(|error| fail(&job.path, error))?;
            let name = entry.file_name().to_bytes();
            if name != b"."
                && name != b".."
                && !name.starts_with(crate::continues::MARK_FILE_PREFIX.as_bytes())
            {
                names.push((name.to_vec(), entry.file_type()));
            }
        }
        let own = names
            .iter()
            .any(|(name, _)| name == self.rules.file_name().as_bytes());
        let entered = if own {
            self.rules.enter(&job.path, job.chain.as_ref())
        } else {
            Ok(None)
        };
        let entered = entered.map_err(|error| {
            Problem::file(&job.path.join(self.rules.file_name()), "read", error)
        })?;
        let chain = entered.or_else(|| job.chain.clone());
        let mut jobs = Vec::new();
        for (name, kind) in names {
            let path = job.path.join(OsStr::from_bytes(&name));
            let stat = rustix::fs::statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW);
            let stat = match stat {
                Ok(stat) => stat,
                // Gone between the listing and now: it is not part of the tree.
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(fail(&path, error)),
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
                .or_else(|| {
                    if self.rules.flavor() == Flavor::Code {
                        outside(&folder, job, &name, kind)
                    } else {
                        None
                    }
                });
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
}

/// A link whose target climbs over the root.
fn outside(folder: &OwnedFd, job: &Job, name: &[u8], kind: FileType) -> Option<Why> {
    if kind != FileType::Symlink {
        return None;
    }
    let target = rustix::fs::readlinkat(folder, name, Vec::new()).ok()?;
    let target = target.as_bytes();
    if target.starts_with(b"/") {
        return None;
    }
    let mut depth = job
        .below
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .count();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return Some(Why::Outside),
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    None
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

/// A path below the root as the system takes it.
pub(crate) fn join(root: &Path, below: &[u8]) -> PathBuf {
    root.join(std::ffi::OsString::from_vec(below.to_vec()))
}
