//! File systems: network kinds, free space, private folders, and files that may be missing.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The kind of network file system that `path` is on, if it is on one. SQLite's WAL must not be
/// used there.
pub fn network_kind(path: &Path) -> Option<&'static str> {
    rustix::fs::statfs(path)
        .ok()
        .and_then(|stat| name_of(u64::try_from(stat.f_type).unwrap_or(0)))
}

fn name_of(magic: u64) -> Option<&'static str> {
    Some(match magic & 0xffff_ffff {
        0x6969 => "nfs",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "smb",
        0x6573_5546 => "fuse",
        0x0bd0_0bd0 => "lustre",
        0x4750_4653 => "gpfs",
        0x1983_0326 => "beegfs",
        0x00c3_6400 => "ceph",
        0x5346_414f | 0x6b41_4653 => "afs",
        0x0102_1997 => "9p",
        _ => return None,
    })
}

/// The free and the total space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub free_bytes: u64,
    pub bytes: u64,
    /// Files and folders that can still be made; `None` if the file system has no such limit.
    pub free_files: Option<u64>,
}

impl Room {
    /// Whether so little is left that a write is likely to fail.
    pub const fn is_full(&self) -> bool {
        self.free_bytes < FULL_BYTES || matches!(self.free_files, Some(free) if free < FULL_FILES)
    }
}

/// With less space free the disk counts as full: one transaction of the history and one journal
/// would not fit.
const FULL_BYTES: u64 = 1 << 20;
/// With room for fewer files the disk counts as full.
const FULL_FILES: u64 = 16;

/// Whether an error says that the disk or the user's quota is full, or that the disk is read-only.
pub fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

pub fn room(path: &Path) -> io::Result<Room> {
    let stat = rustix::fs::statvfs(path)?;
    let limited = stat.f_files > 0;
    Ok(Room {
        free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        free_files: limited.then_some(stat.f_favail),
    })
}

/// Makes a folder that only its owner can use, with its parents. A folder of another owner is
/// refused.
pub fn private_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs::metadata(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} belongs to somebody else", path.display()),
        ));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// The metadata of `path`; `None` only if it is certain that nothing is there. A broken link on the
/// way, a file where a folder should be, or a folder that cannot be searched is an error.
pub fn metadata_if_there(path: &Path) -> io::Result<Option<fs::Metadata>> {
    if_there(path, || fs::metadata(path))
}

/// The bytes of a file; `None` only if it is certain that there is none.
pub fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_there(path, || fs::read(path))
}

/// The entries of a folder. A folder that certainly does not exist has none.
pub fn entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    Ok(if_there(folder, || fs::read_dir(folder)?.collect())?.unwrap_or_default())
}

fn if_there<T>(path: &Path, open: impl Fn() -> io::Result<T>) -> io::Result<Option<T>> {
    match open() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match dead_link(path)? {
            Some(dead) => Err(io::Error::new(io::ErrorKind::NotFound, dead)),
            None => Ok(None),
        },
        Err(error) => Err(error),
    }
}

/// A message about the broken link on the way to `path`, if there is one.
fn dead_link(path: &Path) -> io::Result<Option<String>> {
    for place in path
        .ancestors()
        .filter(|place| !place.as_os_str().is_empty())
    {
        match fs::symlink_metadata(place) {
            Ok(found) if found.is_symlink() && fs::metadata(place).is_err() => {
                return Ok(Some(format!(
                    "{} is a link to {}, which is not there",
                    place.display(),
                    fs::read_link(place)?.display()
                )));
            }
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// An error if a state folder exists and is not a folder of this user.
pub fn check_own(folder: &Path) -> io::Result<()> {
    match metadata_if_there(folder)? {
        Some(found) if !found.is_dir() => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} is not a folder", folder.display()),
        )),
        Some(found) if found.uid() != rustix::process::geteuid().as_raw() => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} belongs to somebody else", folder.display()),
        )),
        _ => Ok(()),
    }
}

/// Removes a folder with all below it, even folders that its owner may not write. Links are not
/// followed. Mounts below it are released first, because their content belongs to others.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    if folder.symlink_metadata().is_ok() && !crate::mounts::release_below(folder).is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "something is mounted below it",
        ));
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_folder_is_ours_alone_and_another_user_s_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("above/own");
        private_folder(&own).expect("made");
        for made in [own.as_path(), own.parent().expect("a parent")] {
            assert_eq!(
                fs::metadata(made).expect("there").permissions().mode() & 0o777,
                0o700
            );
        }
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("opened");
        private_folder(&own).expect("closed again");
        assert_eq!(
            fs::metadata(&own).expect("there").permissions().mode() & 0o777,
            0o700
        );
        check_own(&own).expect("ours");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&own, Some(65_534), None).expect("root gives it away");
            for refused in [private_folder(&own), check_own(&own)] {
                assert!(
                    refused
                        .expect_err("not ours")
                        .to_string()
                        .contains("belongs to somebody else")
                );
            }
        }
    }

    #[test]
    fn only_a_certainly_missing_path_is_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        assert!(
            metadata_if_there(&at("none/at/all"))
                .expect("nothing, for certain")
                .is_none()
        );
        assert!(
            entries(&at("none"))
                .expect("nothing, for certain")
                .is_empty()
        );
        assert_eq!(
            read_if_there(&at("none")).expect("nothing, for certain"),
            None
        );
        fs::write(at("file"), "x").expect("written");
        assert_eq!(
            read_if_there(&at("file")).expect("read").as_deref(),
            Some(b"x".as_slice())
        );
        std::os::unix::fs::symlink(at("unmounted"), at("dead")).expect("a link");
        std::os::unix::fs::symlink(at("circle"), at("circle")).expect("a link");
        for unclear in [
            "dead",
            "dead/below/it",
            "circle",
            "circle/below",
            "file/below",
        ] {
            assert!(
                metadata_if_there(&at(unclear)).is_err()
                    && entries(&at(unclear)).is_err()
                    && read_if_there(&at(unclear)).is_err(),
                "{unclear}"
            );
        }
        assert!(
            metadata_if_there(&at("dead/below"))
                .expect_err("a dead link")
                .to_string()
                .contains("unmounted")
        );
        std::os::unix::fs::symlink(at("file"), at("good")).expect("a link");
        assert!(
            metadata_if_there(&at("good"))
                .expect("followed")
                .is_some_and(|found| found.is_file())
        );
        assert!(
            check_own(folder.path()).is_ok()
                && check_own(&at("none")).is_ok()
                && check_own(&at("file")).is_err()
        );
    }

    #[test]
    fn network_file_systems_are_known_by_their_magic() {
        assert_eq!(super::name_of(0x6969), Some("nfs"));
        assert_eq!(super::name_of(0xef53), None, "ext4");
        assert_eq!(super::name_of(0x0102_1994), None, "tmpfs");
    }
}
