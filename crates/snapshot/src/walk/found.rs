//! The results of a walk.

use crate::rules::Why;
use rustix::fs::Stat;
use std::collections::BTreeMap;

/// One entry that is included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The path below the root.
    pub path: Box<[u8]>,
    pub kind: FoundKind,
    pub mode: u32,
    pub stamp: Stamp,
    /// The file takes fewer bytes on disk than its size.
    pub sparse: bool,
    /// The file has more than one name.
    pub has_hard_links: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundKind {
    Folder,
    File,
    Link,
}

/// A file whose stamp is unchanged is taken for unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
    /// The time of the last change of the inode, which nobody can set back.
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

/// An entry that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: Box<[u8]>,
    pub is_folder: bool,
    pub why: Why,
}

/// How much a tree may hold.
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
    /// Sorted by path; of a folder that is left out only the folder itself.
    pub left_out: Vec<LeftOut>,
    /// The walk was stopped: the tree has more than this.
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

    /// The folders directly below the root, largest first: files, bytes, name.
    pub fn largest(&self) -> Vec<(usize, u64, String)> {
        let mut sums: BTreeMap<&[u8], (usize, u64)> = BTreeMap::new();
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
