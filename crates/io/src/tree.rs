//! Files below one root, reached part by part: no link on the way is followed, so nothing outside
//! is ever read or written.

use crate::data::Key;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    /// The folder used last: neighbours come one after the other.
    last: Mutex<Option<(String, Arc<OwnedFd>)>>,
}

/// The name of a file that is not whole yet ends in this.
const PART_SUFFIX: &str = ".tow-part";

impl Tree {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            last: Mutex::new(None),
        }
    }
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that holds `key`; made with its parents if `make`.
    pub(crate) fn folder(&self, key: &Key, make: bool) -> io::Result<Arc<OwnedFd>> {
        let path = key
            .as_str()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        if let Some((known, folder)) = &*self.last.lock().expect("no panic while held")
            && known == path
        {
            return Ok(folder.clone());
        }
        if make {
            std::fs::create_dir_all(&self.root)?;
        }
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        // Links on the way to the root are the user's own.
        let mut folder = rustix::fs::open(&self.root, flags, Mode::empty())?;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let open = |folder: &OwnedFd| {
                rustix::fs::openat(folder, part, flags | OFlags::NOFOLLOW, Mode::empty())
            };
            folder = match open(&folder) {
                Err(Errno::NOENT) if make => {
                    match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    open(&folder)?
                }
                other => other?,
            };
        }
        let folder = Arc::new(folder);
        *self.last.lock().expect("no panic while held") = Some((path.to_owned(), folder.clone()));
        Ok(folder)
    }

    /// A file for reading. A link is followed where it stays below the root.
    pub(crate) fn open(&self, key: &Key) -> io::Result<File> {
        let folder = self.folder(key, false)?;
        match rustix::fs::openat(
            &folder,
            key.name(),
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::empty(),
        ) {
            Ok(file) => Ok(File::from(file)),
            Err(Errno::LOOP) => {
                let target = self.root.join(key.as_str()).canonicalize()?;
                if target.starts_with(self.root.canonicalize()?) {
                    File::open(target)
                } else {
                    Err(Errno::LOOP.into())
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a link leads to something below the root.
    pub(crate) fn stays_below(&self, key: &Key) -> bool {
        let inside = |root: PathBuf| {
            self.root
                .join(key.as_str())
                .canonicalize()
                .is_ok_and(|target| target.starts_with(root))
        };
        self.root.canonicalize().is_ok_and(inside)
    }

    /// The part file of `key`, ours alone until it is dropped; with whether it was there before.
    pub(crate) fn open_part(&self, key: &Key) -> io::Result<(File, bool)> {
        let folder = self.folder(key, true)?;
        let name = part_name(key.name());
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::openat(
                &folder,
                &name,
                flags,
                Mode::from_raw_mode(0o666),
            )?);
            file.try_lock().map_err(|error| match error {
                std::fs::TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::ResourceBusy, "another tow is writing it")
                }
                std::fs::TryLockError::Error(error) => error,
            })?;
            // Whoever held it before may have put it in its place between our two calls.
            let ours = rustix::fs::fstat(&file)?;
            match rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(named) if named.st_ino == ours.st_ino => return Ok((file, ours.st_size > 0)),
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Puts the part file in the place of `key`; with `create` only where there is nothing:
    /// `false`.
    pub(crate) fn place_part(&self, key: &Key, create: bool) -> io::Result<bool> {
        let folder = self.folder(key, true)?;
        let (part, name) = (part_name(key.name()), key.name());
        if !create {
            rustix::fs::renameat(&folder, &part, &folder, name)?;
            return Ok(true);
        }
        let placed = match rustix::fs::renameat_with(
            &folder,
            &part,
            &folder,
            name,
            RenameFlags::NOREPLACE,
        ) {
            // Some network file systems know no such flag; a second name does the same.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rustix::fs::linkat(&folder, &part, &folder, name, AtFlags::empty())
            }
            other => other,
        };
        match placed {
            Ok(()) | Err(Errno::EXIST) => {
                let _ = rustix::fs::unlinkat(&folder, &part, AtFlags::empty());
                Ok(placed.is_ok())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn remove_part(&self, key: &Key) -> io::Result<()> {
        match rustix::fs::unlinkat(
            &self.folder(key, false)?,
            part_name(key.name()),
            AtFlags::empty(),
        ) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) fn remove(&self, key: &Key) -> io::Result<()> {
        let folder = match self.folder(key, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        match rustix::fs::unlinkat(&folder, key.name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the folders that are empty now that these files are gone, below the root.
    pub(crate) fn prune(&self, gone: &[Key]) {
        let above = |key: &Key| {
            key.as_str()
                .match_indices('/')
                .map(|(at, _)| key.as_str()[..at].to_owned())
                .collect::<Vec<_>>()
        };
        let folders: std::collections::BTreeSet<String> = gone.iter().flat_map(above).collect();
        *self.last.lock().expect("no panic while held") = None;
        // Backwards, so that what lies deeper goes first.
        for key in folders
            .into_iter()
            .rev()
            .filter_map(|folder| Key::new(folder).ok())
        {
            if let Ok(parent) = self.folder(&key, false) {
                let _ = rustix::fs::unlinkat(&parent, key.name(), AtFlags::REMOVEDIR);
            }
        }
        *self.last.lock().expect("no panic while held") = None;
    }

    /// What a name is, without following it.
    pub(crate) fn kind(&self, key: &Key) -> io::Result<FileType> {
        let stat = rustix::fs::statat(
            self.folder(key, false)?,
            key.name(),
            AtFlags::SYMLINK_NOFOLLOW,
        )?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }
}

/// `.NAME.tow-part`; of a long name its digest.
fn part_name(name: &str) -> String {
    if name.len() + PART_SUFFIX.len() < 255 {
        format!(".{name}{PART_SUFFIX}")
    } else {
        format!(".{}{PART_SUFFIX}", blake3::hash(name.as_bytes()).to_hex())
    }
}

pub(crate) fn is_part(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(PART_SUFFIX)
}
