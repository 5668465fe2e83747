//! Files below one root. Folders are opened one after the other without following links, so nothing
//! outside the root is read or written.

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
    /// The folder that was used last, because the next file is often in the same one.
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

    /// The folder that holds `key`. With `make` it is made, with its parents.
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
        // Links on the path to the root are the user's own choice.
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

    /// Opens a file for reading. A link is followed if it stays below the root.
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

    /// Opens and locks the part file of `key`; also whether it had content before.
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
            // Its last writer may have renamed it between our two calls.
            let ours = rustix::fs::fstat(&file)?;
            match rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(named) if named.st_ino == ours.st_ino => return Ok((file, ours.st_size > 0)),
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Renames the part file to `key`. With `create` an existing file is not replaced, and the
    /// answer is `false`.
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
            // Some network file systems lack this flag; a hard link refuses to replace as well.
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

    /// Removes a file. A missing one is not an error.
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

    /// Removes the folders below the root that became empty when these files were removed.
    pub(crate) fn prune(&self, gone: &[Key]) {
        let above = |key: &Key| {
            key.as_str()
                .match_indices('/')
                .map(|(at, _)| key.as_str()[..at].to_owned())
                .collect::<Vec<_>>()
        };
        let folders: std::collections::BTreeSet<String> = gone.iter().flat_map(above).collect();
        *self.last.lock().expect("no panic while held") = None;
        // In reverse order, so that inner folders come first.
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

    /// The type of a name, without following a link.
    pub(crate) fn kind(&self, key: &Key) -> io::Result<FileType> {
        let stat = rustix::fs::statat(
            self.folder(key, false)?,
            key.name(),
            AtFlags::SYMLINK_NOFOLLOW,
        )?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }
}

/// `.NAME.tow-part`; a name that is too long is replaced by its digest.
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
