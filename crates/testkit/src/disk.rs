//! A small disk of its own, in memory, that can be filled and emptied.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unmounted when it is dropped.
#[derive(Debug)]
pub struct Disk(PathBuf);

/// What takes up the room that is taken away.
const BALLAST: &str = "ballast";
const FILES: &str = "files";

impl Disk {
    /// `None` where this user may not mount anything. It holds some thousands of files.
    pub fn mount(at: &Path, kilobytes: u32) -> Option<Self> {
        Self::mount_with_files(at, kilobytes, 20_000)
    }

    /// One that holds only so many files.
    pub fn mount_with_files(at: &Path, kilobytes: u32, files: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let options = format!("size={kilobytes}k,nr_inodes={files},mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output().ok()?;
        mounted.status.success().then(|| Self(at.to_owned()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes away all but so many bytes.
    pub fn leave(&self, bytes: u64) {
        let room = rustix::fs::statvfs(&self.0).unwrap();
        let free = (room.f_bavail * room.f_frsize).saturating_sub(bytes);
        // Without files left, or where somebody else takes the room first, it is as full as it can be.
        let Ok(ballast) = fs::OpenOptions::new().create(true).append(true).open(self.0.join(BALLAST)) else { return };
        let length = ballast.metadata().unwrap().len();
        let _ = rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), length, free.max(1));
    }

    /// Takes away all but so many files.
    pub fn leave_files(&self, files: u64) {
        let folder = self.0.join(FILES);
        if fs::create_dir_all(&folder).is_err() {
            return;
        }
        let free = rustix::fs::statvfs(&self.0).unwrap().f_favail.saturating_sub(files);
        for number in 0..free {
            let _ = fs::write(folder.join(number.to_string()), b"");
        }
    }

    /// Gives everything back.
    pub fn relieve(&self) {
        let _ = fs::remove_file(self.0.join(BALLAST));
        let _ = fs::remove_dir_all(self.0.join(FILES));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Something of a home that is being dropped may still be at work there.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
