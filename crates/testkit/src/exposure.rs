//! Finds what other users could access: folders that they may enter, sockets they may connect to,
//! listening ports.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Everything below a folder, itself included. Links are not followed.
pub fn all_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = open.pop() {
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            open.extend(
                fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
        found.push(path);
    }
    found
}

/// The permissions of a file or folder; `None` if it is gone again.
pub fn mode(path: &Path) -> Option<u32> {
    Some(path.symlink_metadata().ok()?.permissions().mode() & 0o777)
}

/// The folders below one, itself included, that other users may list or enter.
pub fn open_folders(folder: &Path) -> Vec<PathBuf> {
    let is_open = |path: &PathBuf| {
        path.symlink_metadata()
            .is_ok_and(|meta| meta.is_dir() && meta.permissions().mode() & 0o077 != 0)
    };
    all_below(folder).into_iter().filter(is_open).collect()
}

/// The sockets below a folder, by name.
pub fn sockets(folder: &Path) -> Vec<PathBuf> {
    let is_socket = |path: &PathBuf| {
        path.symlink_metadata()
            .is_ok_and(|meta| meta.file_type().is_socket())
    };
    all_below(folder).into_iter().filter(is_socket).collect()
}

/// The local addresses, as the kernel writes them, at which a process listens for TCP:
/// `0100007F:1F90` is 127.0.0.1:8080.
pub fn listens_at(pid: i32) -> Vec<String> {
    let links = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let own: BTreeSet<String> = links
        .filter_map(|link| {
            Some(
                link.to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .to_owned(),
            )
        })
        .collect();
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let lines = tables
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    // The second field is the address, the fourth the state, the tenth the inode.
    lines
        .filter(|fields| {
            fields.get(3) == Some(&"0A") && fields.get(9).is_some_and(|inode| own.contains(*inode))
        })
        .map(|fields| fields[1].to_owned())
        .collect()
}

/// The files below a folder that hold these bytes.
pub fn files_holding(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        path.symlink_metadata().is_ok_and(|meta| meta.is_file())
            && fs::read(path).is_ok_and(|held| held.windows(bytes.len()).any(|part| part == bytes))
    };
    all_below(folder).into_iter().filter(holds).collect()
}
