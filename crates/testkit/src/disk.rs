//! A small disk in memory that can be filled and emptied.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Unmounted when it is dropped.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    taker: Mutex<Option<Taker>>,
}

/// A thread that takes all free space.
#[derive(Debug)]
struct Taker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The file that takes up the space.
const BALLAST_FILE: &str = "ballast";
const FILES_FOLDER: &str = "files";

impl Disk {
    /// `None` if this user may not mount. It holds some thousands of files.
    pub fn mount(at: &Path, kilobytes: u32) -> Option<Self> {
        Self::mount_with_files(at, kilobytes, 20_000)
    }

    /// A disk that holds only so many files.
    pub fn mount_with_files(at: &Path, kilobytes: u32, files: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let options = format!("size={kilobytes}k,nr_inodes={files},mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .output()
            .ok()?;
        mounted.status.success().then(|| Self {
            path: at.to_owned(),
            taker: Mutex::default(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes all space except so many bytes.
    pub fn leave(&self, bytes: u64) {
        fill(&self.path, bytes);
    }

    /// Takes all space, and whatever becomes free later, until it is relieved.
    pub fn leave_nothing_for_long(&self) {
        self.leave(0);
        let (stop, path) = (Arc::new(AtomicBool::new(false)), self.path.clone());
        let stopped = Arc::clone(&stop);
        let taking = move || {
            while !stopped.load(Ordering::Relaxed) {
                fill(&path, 0);
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        self.send_away(Some(Taker {
            stop,
            thread: std::thread::spawn(taking),
        }));
    }

    fn send_away(&self, next: Option<Taker>) {
        let former = std::mem::replace(
            &mut *self.taker.lock().unwrap_or_else(PoisonError::into_inner),
            next,
        );
        if let Some(Taker { stop, thread }) = former {
            stop.store(true, Ordering::Relaxed);
            let _ = thread.join();
        }
    }

    /// Takes all files except so many.
    pub fn leave_files(&self, files: u64) {
        let folder = self.path.join(FILES_FOLDER);
        if fs::create_dir_all(&folder).is_err() {
            return;
        }
        let free = rustix::fs::statvfs(&self.path)
            .unwrap()
            .f_favail
            .saturating_sub(files);
        for number in 0..free {
            let _ = fs::write(folder.join(number.to_string()), b"");
        }
    }

    /// Frees the files that were taken.
    pub fn give_files_back(&self) {
        let _ = fs::remove_dir_all(self.path.join(FILES_FOLDER));
    }

    /// Frees everything.
    pub fn relieve(&self) {
        self.send_away(None);
        let _ = fs::remove_file(self.path.join(BALLAST_FILE));
        self.give_files_back();
    }
}

fn fill(path: &Path, but: u64) {
    let room = rustix::fs::statvfs(path).unwrap();
    let free = (room.f_bavail * room.f_frsize).saturating_sub(but);
    // Without free files, or if another process takes the space first, it is as full as it can be.
    let Ok(ballast) = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path.join(BALLAST_FILE))
    else {
        return;
    };
    let length = ballast.metadata().unwrap().len();
    let _ = rustix::fs::fallocate(
        &ballast,
        rustix::fs::FallocateFlags::empty(),
        length,
        free.max(1),
    );
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.send_away(None);
        // Processes of a home that is being dropped may still be at work there.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .status();
    }
}
