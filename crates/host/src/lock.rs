//! Locks on files: the only proof of life we trust.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Takes the lock at once or says `false`. It lasts as long as any copy of the descriptor.
pub fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Like [`try_lock`], but not put off by somebody who only looks: [`is_held`] takes it for an instant.
pub fn try_lock_patiently(file: impl AsFd) -> io::Result<bool> {
    for _ in 0..10 {
        if try_lock(file.as_fd())? {
            return Ok(true);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(false)
}

/// Whether somebody holds the lock on `path`. A missing file is held by nobody.
pub fn is_held(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the lock that many may hold at once, and that keeps [`lock_alone`] out.
pub fn lock_shared(file: impl AsFd) -> io::Result<()> {
    wait_for(file, FlockOperation::LockShared)
}

/// Waits until nobody else holds the lock.
pub fn lock_alone(file: impl AsFd) -> io::Result<()> {
    wait_for(file, FlockOperation::LockExclusive)
}

fn wait_for(file: impl AsFd, operation: FlockOperation) -> io::Result<()> {
    loop {
        match flock(file.as_fd(), operation) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
