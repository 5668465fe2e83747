//! Writing the content of files, frame by frame, on several threads.

use super::{Layout, is_simple, seal};
use crate::digest::Digest;
use crate::manifest::{Entry, Kind, Piece};
use crate::pack::unpack;
use crate::problem::{Problem, Result};
use crate::store::Blob;
use rustix::fs::{Mode, OFlags, openat};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// A range of a file that a part of a frame fills.
pub(super) struct Fill {
    entry: usize,
    /// The offset in the file.
    at: u64,
    /// The offset in the frame.
    offset: usize,
    length: usize,
    digest: Digest,
}

impl Layout<'_> {
    /// The ranges that each frame fills.
    pub(super) fn plan(&self, cloned: &HashSet<usize>) -> Result<Vec<Vec<Fill>>> {
        let places = self.root.chunks();
        let mut fills: Vec<Vec<Fill>> = self.root.frames.iter().map(|_| Vec::new()).collect();
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
                    let fits = fills.get_mut(place.frame as usize).ok_or_else(missing)?;
                    fits.push(Fill {
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
        Ok(fills)
    }

    pub(super) fn fill_all(&self, plan: &[Vec<Fill>]) -> Result<()> {
        let threads = if plan.len() > 1 {
            // Asked only if it matters, because that reads several files.
            std::thread::available_parallelism()
                .map_or(1, |count| count.get().min(8))
                .max(self.store.parallel())
                .min(plan.len())
        } else {
            1
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // If a thread cannot be made, this one does its work too.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || self.work(plan));
            }
            self.work(plan);
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

    fn work(&self, plan: &[Vec<Fill>]) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(fills) = plan.get(number) else {
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

    fn fill_from(&self, number: usize, fills: &[Fill]) -> Result<()> {
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
}
