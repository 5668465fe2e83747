//! Unix sockets in folders whose path may be longer than a socket address can hold: they are
//! reached through the folder's descriptor.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

fn through(folder: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

pub fn connect(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let folder = File::open(folder)?;
    UnixStream::connect(through(&folder, name))
}

/// Binds `name` in `folder`, in place of a dead socket of that name. Whoever calls holds the lock
/// that makes it the only one to do so.
pub fn bind(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let handle = File::open(folder)?;
    match std::fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(through(&handle, name))
}
