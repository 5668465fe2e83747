//! Logs and other files of a run's folder on a file system of this machine.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use towline_core::cluster::{FileEntry, LogBytes, LogLength};
use towline_core::{Error, Result};
use towline_wire::log_name::LogName;

/// The most entries in one listing.
const MAX_ENTRIES: usize = 200_000;

fn failed(path: &Path, error: io::Error) -> Error {
    Error::from_io(format!("{} cannot be read", path.display()), error)
}

/// Every log in a run's folder; none if there is no folder.
pub fn logs(folder: &Path) -> Result<Vec<LogLength>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| failed(folder, error))?,
    };
    let mut logs = Vec::new();
    for entry in entries.flatten() {
        if let Some(log) = entry.file_name().to_str().and_then(LogName::from_file) {
            let length = entry
                .metadata()
                .map_err(|error| failed(&entry.path(), error))?
                .len();
            logs.push(LogLength {
                attempt: log.attempt,
                source: log.source,
                length,
            });
        }
    }
    logs.sort_by_key(|log| (log.attempt, log.source));
    Ok(logs)
}

/// A part of a file, and the length of the whole; empty if there is no file.
pub fn part(path: &Path, offset: u64, most: u64) -> Result<LogBytes> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LogBytes::default()),
        Err(error) => return Err(failed(path, error)),
    };
    let failed = |error| failed(path, error);
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    if offset < length {
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(LogBytes {
        bytes,
        length: Some(length),
    })
}

/// A path inside a run's folder. A link is followed only if it stays below `root`, because
/// elsewhere it could lead to anything.
pub fn below(root: &Path, folder: &Path, path: &str) -> Result<PathBuf> {
    let path = Path::new(path);
    if path
        .components()
        .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
    {
        return Err(Error::refused(format!(
            "{} does not lie in the run's folder",
            path.display()
        )));
    }
    let whole = folder.join(path);
    let Ok(real) = whole.canonicalize() else {
        return Ok(whole);
    };
    if root.canonicalize().is_ok_and(|root| real.starts_with(root)) {
        return Ok(real);
    }
    let error = Error::refused(format!(
        "{} leads to {}, outside the run's folder",
        path.display(),
        real.display()
    ));
    Err(error.hint("copy it from there"))
}

/// The entry at a path and everything below it; empty if there is none.
pub fn list(root: &Path) -> Result<Vec<FileEntry>> {
    let mut listed = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(&path, error)),
        };
        // JSON cannot hold a name that is not UTF-8, so it is left out.
        let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) else {
            continue;
        };
        let link = fs::read_link(&path)
            .ok()
            .and_then(|target| target.to_str().map(str::to_owned));
        listed.push(FileEntry {
            path: name.to_owned(),
            size: meta.len(),
            mode: meta.permissions().mode() & 0o7777,
            is_folder: meta.is_dir(),
            link,
        });
        if meta.is_dir() {
            let entries = fs::read_dir(&path).map_err(|error| failed(&path, error))?;
            todo.extend(entries.flatten().map(|entry| entry.path()));
        }
        if listed.len() > MAX_ENTRIES {
            return Err(Error::too_large(format!(
                "{} holds more than {MAX_ENTRIES} files",
                root.display()
            ))
            .hint("name a folder below it"));
        }
    }
    listed.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(listed)
}
