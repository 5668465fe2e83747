//! Unix sockets in folders whose path may be too long for a socket address. They are reached
//! through the folder's descriptor.

use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn through(folder: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// Connects with a timeout for connecting and for every later read and write. A stopped program
/// still has a queue of connections, and that queue may be full.
pub fn connect_within(folder: &Path, name: &str, limit: Duration) -> io::Result<UnixStream> {
    let folder = File::open(folder)?;
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        rustix::net::sockopt::set_socket_timeout(&socket, timeout, Some(limit))?;
    }
    rustix::net::connect(&socket, &SocketAddrUnix::new(through(&folder, name))?)?;
    Ok(socket.into())
}

/// Whether an operation timed out.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

pub fn connect(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let folder = File::open(folder)?;
    UnixStream::connect(through(&folder, name))
}

/// Binds `name` in `folder`, in place of a dead socket of that name. The caller must hold the lock
/// that makes it the only one to do so.
pub fn bind(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let handle = File::open(folder)?;
    match std::fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(through(&handle, name))
}
