//! Large files that are kept whole beside the packs, if the file system can share blocks between
//! files. A layout then clones them instead of writing them. This is only a cache: every clone is
//! read and verified.

use crate::digest::Digest;
use crate::manifest::{Kind, Piece};
use rustix::fs::ioctl_ficlone;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Smaller files are unpacked as quickly as they are cloned.
const MIN_WHOLE_FILE_BYTES: u64 = 1 << 20;

pub(crate) struct WholeFiles {
    folder: PathBuf,
    /// Whether the file system can share blocks; true until a clone fails.
    works: AtomicBool,
}

impl WholeFiles {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            works: AtomicBool::new(true),
        }
    }

    /// The path of the kept file with this content; `None` if such a file is not kept whole.
    fn place(&self, kind: &Kind) -> Option<PathBuf> {
        let Kind::File(pieces) = kind else {
            return None;
        };
        let mut name = Vec::new();
        let mut size = 0;
        for piece in pieces {
            let Piece::Chunk { digest, length } = piece else {
                return None;
            };
            name.extend_from_slice(&digest.0);
            size += length;
        }
        (size >= MIN_WHOLE_FILE_BYTES && self.works.load(Ordering::Relaxed))
            .then(|| self.folder.join(Digest::of(&name).to_string()))
    }

    /// Makes the empty `file` a clone of the kept one, and verifies it.
    pub(crate) fn fill(&self, kind: &Kind, file: impl AsFd) -> bool {
        let Some(place) = self.place(kind) else {
            return false;
        };
        let Ok(kept) = File::open(&place) else {
            return false;
        };
        if ioctl_ficlone(&file, &kept).is_err() {
            self.works.store(false, Ordering::Relaxed);
            return false;
        }
        if is_right(kind, &kept) {
            return true;
        }
        // It is damaged: the file is laid out from the packs and kept anew.
        let _ = fs::remove_file(place);
        let _ = rustix::fs::ftruncate(file, 0);
        false
    }

    /// Keeps a clone of a file that was just laid out. It takes no room until one of the two
    /// changes.
    pub(crate) fn keep(&self, kind: &Kind, file: impl AsFd) {
        let Some(place) = self.place(kind).filter(|place| !place.exists()) else {
            return;
        };
        let _ = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder);
        let part = place.with_extension(format!("part-{}", std::process::id()));
        let Ok(kept) = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o400)
            .open(&part)
        else {
            return;
        };
        let outcome = ioctl_ficlone(&kept, file);
        if outcome.is_err() || fs::rename(&part, place).is_err() {
            let _ = fs::remove_file(part);
        }
        if outcome.is_err() {
            self.works.store(false, Ordering::Relaxed);
        }
    }
}

fn is_right(kind: &Kind, file: &File) -> bool {
    let Kind::File(pieces) = kind else {
        return false;
    };
    let mut buffer = Vec::new();
    let mut at = 0;
    for piece in pieces {
        let Piece::Chunk { digest, length } = piece else {
            return false;
        };
        buffer.resize(usize::try_from(*length).unwrap_or(0), 0);
        if file.read_exact_at(&mut buffer, at).is_err() || Digest::of(&buffer) != *digest {
            return false;
        }
        at += length;
    }
    file.metadata().is_ok_and(|meta| meta.len() == at)
}
