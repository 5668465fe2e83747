//! Locks on files: the only proof of life we trust.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Takes the lock at once or says `false`. It lasts as long as any copy of the descriptor.
pub fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Like [`try_lock`], but not put off by somebody who only looks: [`is_held`] takes it for an
/// instant.
pub fn try_lock_with_retries(file: impl AsFd) -> io::Result<bool> {
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

/// The process that holds the lock on `path` alone, as the kernel tells of its open files. `None`
/// where nobody does, or where whoever does cannot be seen from here: another user, another host.
pub fn holder(path: &Path) -> io::Result<Option<i32>> {
    let wanted = std::fs::metadata(path)?;
    let is_it = |pid: i32| -> io::Result<bool> {
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
            let entry = entry?;
            let same = std::fs::metadata(entry.path())
                .is_ok_and(|open| (open.dev(), open.ino()) == (wanted.dev(), wanted.ino()));
            if same
                && holds(&std::fs::read_to_string(format!(
                    "/proc/{pid}/fdinfo/{}",
                    entry.file_name().display()
                ))?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    };
    // A process that goes away while it is looked at, or is another user's, is not the one.
    Ok(crate::process::all()
        .into_keys()
        .find(|pid| is_it(*pid).unwrap_or(false)))
}

/// Whether what the kernel says of a descriptor names a lock that shuts out others.
fn holds(descriptor: &str) -> bool {
    descriptor
        .lines()
        .filter(|line| line.starts_with("lock:"))
        .any(|line| line.split_ascii_whitespace().any(|word| word == "WRITE"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_known_by_its_open_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let file = File::create(&path).expect("a file");
        assert_eq!(
            holder(&path).expect("it can be looked at"),
            None,
            "open, and not locked"
        );
        assert!(try_lock(&file).expect("it can be locked"));
        assert_eq!(
            holder(&path).expect("it can be looked at"),
            i32::try_from(std::process::id()).ok()
        );
        drop(file);
        assert_eq!(holder(&path).expect("it can be looked at"), None);
        assert!(holder(&folder.path().join("none")).is_err());
    }
}
