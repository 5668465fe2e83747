//! Which file systems keep shared memory and locks to one machine, and private folders.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The name of a network file system, when `path` is on one: SQLite's WAL must not be used there.
pub fn network_kind(path: &Path) -> Option<&'static str> {
    rustix::fs::statfs(path).ok().and_then(|stat| name_of(u64::try_from(stat.f_type).unwrap_or(0)))
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

/// What is free for us on the file system of a path, and how much it has in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub free_bytes: u64,
    pub bytes: u64,
    /// Files and folders that can still be made; `None` where the file system has no such limit.
    pub free_files: Option<u64>,
}

impl Room {
    /// Whether so little is left that a write of ours is likely to fail.
    pub const fn is_full(&self) -> bool {
        self.free_bytes < FULL_BYTES || matches!(self.free_files, Some(free) if free < FULL_FILES)
    }
}

/// Less free than this counts as a full disk: one transaction of the history and one journal would not fit.
const FULL_BYTES: u64 = 1 << 20;
const FULL_FILES: u64 = 16;

/// Whether an error says that the disk, or the user's share of it, is full, or that it cannot be written at present.
pub fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem)
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

/// Makes a folder that only its owner can read, with its parents. One that others own or can
/// write to is refused.
pub fn private_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs::metadata(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} belongs to somebody else", path.display())));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Removes a folder with all below it, also what its owner may not write. Links are not followed,
/// and what is mounted below is let go of first: its content is somebody else's.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    if folder.symlink_metadata().is_ok() && !crate::mounts::release_below(folder).is_empty() {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "something is mounted below it"));
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
    #[test]
    fn network_file_systems_are_known_by_their_magic() {
        assert_eq!(super::name_of(0x6969), Some("nfs"));
        assert_eq!(super::name_of(0xef53), None, "ext4");
        assert_eq!(super::name_of(0x0102_1994), None, "tmpfs");
    }
}
