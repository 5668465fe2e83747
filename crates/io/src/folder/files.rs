//! The files of a folder: read in ranges, written whole or in blocks.

use super::{Inner, Part, walk};
use crate::buffer::Buffer;
use crate::data::{Block, Key, Marks, Shape};
use crate::sparse;
use crate::transfer::hash;
use bytes::Bytes;
use rustix::fs::{Timespec, Timestamps};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use towline_core::quantity::Memory;
use towline_core::{Error, Result, Retry};

impl Inner {
    pub(super) fn path(&self, key: &Key) -> String {
        self.tree.root().join(key.as_str()).display().to_string()
    }

    pub(super) fn failed(&self, key: &Key, error: io::Error) -> Error {
        let path = self.path(key);
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return Error::conflict(format!(
                "{path}: a link is in the way; links are not followed"
            ));
        }
        match error.kind() {
            io::ErrorKind::NotFound => Error::not_found(format!("there is no {path}")),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::no_room(format!("no space left for {path}"))
                    .source_error(error)
                    .hint("make room; the same command goes on where it stopped")
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Error::from_io(format!("{path} cannot be used"), error)
                    .hint("look at the owner and mode of the folder")
            }
            io::ErrorKind::NotADirectory => Error::conflict(format!(
                "{path}: a file is in the way where a folder has to be"
            )),
            io::ErrorKind::IsADirectory | io::ErrorKind::DirectoryNotEmpty => {
                Error::conflict(format!("{path}: a folder is in the way of this file"))
            }
            io::ErrorKind::ResourceBusy => {
                Error::conflict(format!("{path}: another tow is writing it")).retry(Retry::Later)
            }
            _ => Error::from_io(format!("{path} failed"), error),
        }
    }

    pub(super) fn read(
        &self,
        key: &Key,
        range: &Range<u64>,
        version: Option<&str>,
    ) -> Result<Bytes> {
        let failed = |error| self.failed(key, error);
        let changed = || {
            Error::conflict(format!("{} changed while it was read", self.path(key)))
                .hint("try again when nobody writes to it")
        };
        let file = self.tree.open(key).map_err(failed)?;
        let before = file.metadata().map_err(failed)?;
        if !before.is_file() {
            return Err(Error::not_found(format!(
                "{} is not a file",
                self.path(key)
            )));
        }
        if version.is_some_and(|version| version != walk::version(&before)) {
            return Err(changed());
        }
        let length = usize::try_from(range.end - range.start)
            .map_err(|_| Error::bug("a block is too large"))?;
        let is_sparse = before.blocks() * 512 < before.len();
        let mut bytes = Buffer::new(length);
        if is_sparse && sparse::is_hole(&file, range) {
            bytes.as_mut().fill(0);
        } else {
            file.read_exact_at(bytes.as_mut(), range.start)
                .map_err(|error| {
                    if error.kind() == io::ErrorKind::UnexpectedEof {
                        changed()
                    } else {
                        failed(error)
                    }
                })?;
        }
        if walk::version(&file.metadata().map_err(failed)?) != walk::version(&before) {
            return Err(changed());
        }
        Ok(bytes.freeze())
    }

    pub(super) fn write(
        &self,
        key: &Key,
        bytes: &[u8],
        marks: &Marks,
        create: bool,
    ) -> Result<bool> {
        let failed = |error| self.failed(key, error);
        let (file, _) = self.tree.open_part(key).map_err(failed)?;
        let act = || -> io::Result<bool> {
            file.set_len(0)?;
            file.set_len(bytes.len() as u64)?;
            sparse::write_at(&file, 0, bytes)?;
            set_modified(&file, marks)?;
            if create {
                // The caller relies on the new file, so it must survive a power cut.
                file.sync_data()?;
            }
            self.tree.place_part(key, create)
        };
        act().map_err(|error| {
            let _ = self.tree.remove_part(key);
            failed(error)
        })
    }

    pub(super) fn open(&self, key: &Key, shape: Shape) -> Result<()> {
        let failed = |error| self.failed(key, error);
        // The part file of an earlier try is still open and locked by us.
        let ours = self
            .parts
            .lock()
            .expect("no panic while held")
            .remove(key.as_str());
        let (file, was_there) = match ours {
            Some(part) => (part.file, true),
            None => self
                .tree
                .open_part(key)
                .map(|(file, was_there)| (Arc::new(file), was_there))
                .map_err(failed)?,
        };
        let held = file.metadata().map_err(failed)?.blocks() * 512;
        if let Ok(room) = rustix::fs::fstatvfs(&*file) {
            let free = room.f_bavail.saturating_mul(room.f_frsize);
            if free.saturating_add(held) < shape.needed_bytes() {
                if !was_there {
                    let _ = self.tree.remove_part(key);
                }
                let error = Error::no_room(format!(
                    "no space for {}: it needs {}, free are {}",
                    self.path(key),
                    Memory(shape.needed_bytes()),
                    Memory(free)
                ));
                return Err(error.hint("make room; the same command goes on where it stopped"));
            }
        }
        file.set_len(shape.size).map_err(failed)?;
        self.parts.lock().expect("no panic while held").insert(
            key.to_string(),
            Part {
                file,
                shape,
                was_there,
            },
        );
        Ok(())
    }

    pub(super) fn part(&self, key: &Key) -> Result<Part> {
        self.parts
            .lock()
            .expect("no panic while held")
            .get(key.as_str())
            .cloned()
            .ok_or_else(|| Error::bug(format!("{key} is not being written")))
    }

    /// The blocks in a part file that an earlier writer left.
    pub(super) fn blocks(&self, key: &Key) -> Result<Vec<Block>> {
        let Part {
            file,
            shape,
            was_there,
        } = self.part(key)?;
        let mut found = Vec::new();
        let mut bytes = vec![0; usize::try_from(shape.block.min(shape.size)).unwrap_or(0)];
        for index in (0..shape.blocks()).filter(|_| was_there) {
            let range = shape.range(index);
            if sparse::is_hole(&file, &range) {
                continue;
            }
            let size = range.end - range.start;
            let bytes = &mut bytes[..usize::try_from(size).unwrap_or(0)];
            file.read_exact_at(bytes, range.start)
                .map_err(|error| self.failed(key, error))?;
            let digest = Some(hash::sums(shape, index, bytes).digest());
            found.push(Block {
                index,
                size,
                digest,
                tag: String::new(),
            });
        }
        Ok(found)
    }

    pub(super) fn finish(&self, key: &Key, marks: &Marks) -> Result<()> {
        let failed = |error| self.failed(key, error);
        let Part { file, .. } = self.part(key)?;
        if let (Some(expected), None) = (marks.md5, marks.blake3)
            && md5_of(&file).map_err(failed)? != expected
        {
            return Err(Error::unreachable(format!(
                "{key}: what arrived is not what the service says (MD5)"
            )));
        }
        set_modified(&file, marks).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        self.tree.place_part(key, false).map_err(failed)?;
        self.parts
            .lock()
            .expect("no panic while held")
            .remove(key.as_str());
        Ok(())
    }
}

fn set_modified(file: &File, marks: &Marks) -> io::Result<()> {
    let Some((seconds, nanos)) = marks.modified else {
        return Ok(());
    };
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanos.into(),
    };
    Ok(rustix::fs::futimens(
        file,
        &Timestamps {
            last_access: time,
            last_modification: time,
        },
    )?)
}

fn md5_of(file: &File) -> io::Result<[u8; 16]> {
    use md5::Digest;
    let mut hasher = md5::Md5::new();
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        match file.read_at(&mut bytes, at)? {
            0 => return Ok(hasher.finalize().into()),
            count => {
                hasher.update(&bytes[..count]);
                at += count as u64;
            }
        }
    }
}
