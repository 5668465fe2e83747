//! A lease says that processes of an attempt may be alive: its holder touches a file periodically.
//! A holder that cannot touch it any more ends its processes before another may take the lease for
//! lapsed. The file system's own clock gives the age, because the clocks of hosts differ.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use towline_wire::stage::{LEASE_EVERY, LEASE_GIVEN_UP, LEASE_LAPSED};

/// A lease that is held. A thread of its own touches it, because a hanging file system may block
/// that.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    touched: Arc<Mutex<Instant>>,
    over: Arc<AtomicBool>,
}

impl Lease {
    pub(super) fn take(path: PathBuf) -> io::Result<Self> {
        fs::write(&path, b"")?;
        let lease = Self {
            path,
            touched: Arc::new(Mutex::new(Instant::now())),
            over: Arc::new(AtomicBool::new(false)),
        };
        let (path, touched, over) = (
            lease.path.clone(),
            lease.touched.clone(),
            lease.over.clone(),
        );
        std::thread::Builder::new()
            .name("lease".into())
            .spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::thread::park_timeout(LEASE_EVERY);
                    // Counted from before the write, so that we never think the file younger than
                    // it is.
                    let begun = Instant::now();
                    if !over.load(Ordering::Relaxed) && fs::write(&path, b"").is_ok() {
                        *touched.lock().unwrap_or_else(PoisonError::into_inner) = begun;
                    }
                }
            })?;
        Ok(lease)
    }

    /// Whether it could not be touched for too long: others may take it for lapsed at any moment.
    pub(super) fn is_lost(&self) -> bool {
        self.touched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
            > LEASE_GIVEN_UP
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether no process of an attempt can be alive, by its leases. A lease that was never taken
/// counts as lapsed only if the claim is old enough.
pub fn is_lapsed(leases: &[PathBuf], claim: &Path) -> io::Result<bool> {
    let now = clock_of(claim)?;
    for path in leases.iter().map(PathBuf::as_path).chain([claim]) {
        match fs::metadata(path) {
            Ok(meta)
                if now
                    .duration_since(meta.modified()?)
                    .unwrap_or(Duration::ZERO)
                    < LEASE_LAPSED =>
            {
                return Ok(false);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The time by the clock that stamps files there.
fn clock_of(beside: &Path) -> io::Result<std::time::SystemTime> {
    let probe = beside.with_file_name(format!(
        ".clock.{}.{}",
        rustix::system::uname().nodename().to_string_lossy(),
        std::process::id()
    ));
    // An empty file needs no space on a full disk.
    fs::write(&probe, b"")?;
    let now = fs::metadata(&probe)?.modified();
    let _ = fs::remove_file(&probe);
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_alive_while_it_is_touched_and_gone_with_its_holder() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = std::time::SystemTime::UNIX_EPOCH;
        let (claim, path) = (folder.path().join("claim"), folder.path().join("lease"));
        fs::File::create(&claim)
            .and_then(|file| file.set_modified(old))
            .expect("an old claim");
        assert!(
            is_lapsed(std::slice::from_ref(&path), &claim).expect("it can be told"),
            "nobody took it"
        );
        let lease = Lease::take(path.clone()).expect("it can be taken");
        assert!(
            !lease.is_lost()
                && !is_lapsed(std::slice::from_ref(&path), &claim).expect("it can be told")
        );
        drop(lease);
        assert!(!path.exists());
        fs::write(&claim, b"").expect("a young claim");
        assert!(
            !is_lapsed(&[path], &claim).expect("it can be told"),
            "its holders may be about to take theirs"
        );
    }
}
