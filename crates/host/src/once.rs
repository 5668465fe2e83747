//! Files that are made whole and only once, also on a file system that many hosts share.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Numbers the files of this process.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// A name beside `path` that nobody else uses, on any host.
fn beside(path: &Path) -> PathBuf {
    let host = rustix::system::uname();
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    path.with_file_name(format!(
        ".{name}.{}.{}.{number}",
        host.nodename().to_string_lossy(),
        std::process::id()
    ))
}

fn written(path: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
    let part = beside(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&part)?;
    let done = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = done {
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    Ok(part)
}

/// Makes a synced file with these bytes. If the file exists, nothing is changed and the answer is
/// `false`.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let part = written(path, bytes, 0o600)?;
    // A hard link is made or not, the same on every host. The answer may be lost on the way to us.
    let made = match fs::hard_link(&part, path) {
        Ok(()) => Ok(true),
        Err(_) if is_same(&part, path) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    };
    let _ = fs::remove_file(&part);
    made
}

fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Writes a synced file with these bytes, in place of an existing one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = written(path, bytes, 0o600)?;
    fs::rename(&part, path).inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_makers_one_succeeds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("claim");
        let made: usize = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..16u8)
                .map(|number| {
                    scope.spawn({
                        let path = path.clone();
                        move || usize::from(create(&path, &[number; 100]).expect("it can be tried"))
                    })
                })
                .collect();
            makers
                .into_iter()
                .map(|maker| maker.join().expect("no panic"))
                .sum()
        });
        assert_eq!(made, 1);
        let bytes = fs::read(&path).expect("it is there");
        assert!(
            bytes.len() == 100 && bytes.iter().all(|byte| *byte == bytes[0]),
            "whole, and of one maker"
        );
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "nothing is left beside it"
        );
    }
}
