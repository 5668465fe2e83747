//! Locks on files. A held lock is the only proof that a process is alive.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Takes the lock, or returns `false` at once. The lock lasts as long as any copy of the
/// descriptor.
pub fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Like [`try_lock`], but tries for some milliseconds, because [`is_held`] takes the lock for an
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

/// Whether a process holds the lock on `path`. Nobody holds the lock of a missing file.
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

/// The process that holds the exclusive lock on `path`, found in `/proc`. `None` if nobody holds
/// it, or if the holder cannot be seen: it is of another user, or on another host.
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
    // A process that ends meanwhile, or belongs to another user, is skipped.
    Ok(crate::process::all()
        .into_keys()
        .find(|pid| is_it(*pid).unwrap_or(false)))
}

/// Whether the `fdinfo` of a descriptor names an exclusive lock.
fn holds(descriptor: &str) -> bool {
    descriptor
        .lines()
        .filter(|line| line.starts_with("lock:"))
        .any(|line| line.split_ascii_whitespace().any(|word| word == "WRITE"))
}

/// Waits for a shared lock. Many may hold it at once; it excludes [`lock_alone`].
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
