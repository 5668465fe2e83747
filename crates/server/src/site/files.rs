//! Logs and other files of a run's folder.

use super::removed_code::RemovedCode;
use super::{Answer, failed};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use towline_core::cluster::LogSource;
use towline_core::cluster::{FileEntry, LogLength};
use towline_core::{Error, Result, RunId};
use towline_wire::layout::{log_name, parse_log_name};
use towline_wire::site::SiteReply;
use towline_wire::stage::StageFolder;

/// Sent at once; a file of any size passes through this much memory.
const MOST: u64 = 4 << 20;
/// Entries of one listing.
const MOST_ENTRIES: usize = 200_000;

pub(super) fn logs(stage: &StageFolder, run: &RunId) -> Result<Vec<LogLength>> {
    let folder = stage.run(run);
    let entries = match fs::read_dir(folder.root()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| failed(folder.root(), error))?,
    };
    let mut logs = Vec::new();
    for entry in entries.flatten() {
        if let Some((attempt, source)) = entry.file_name().to_str().and_then(parse_log_name) {
            let length = entry
                .metadata()
                .map_err(|error| failed(&entry.path(), error))?
                .len();
            logs.push(LogLength {
                attempt,
                source,
                length,
            });
        }
    }
    logs.sort_by_key(|log| (log.attempt, log.source));
    Ok(logs)
}

pub(super) fn log(
    stage: &StageFolder,
    run: &RunId,
    attempt: u32,
    source: LogSource,
    offset: u64,
    most: u64,
) -> Result<Answer> {
    part(
        &stage.run(run).root().join(log_name(attempt, source)),
        offset,
        most,
    )
}

pub(super) fn read(
    stage: &StageFolder,
    run: &RunId,
    path: &str,
    offset: u64,
    most: u64,
) -> Result<Answer> {
    let found = part(&below(stage, run, path)?, offset, most)?;
    let (SiteReply::Bytes { length: None, .. }, _) = found else {
        return Ok(found);
    };
    let removed = RemovedCode::of(stage, run)?
        .map(|code| code.part(path, offset, most.min(MOST)))
        .transpose()?
        .flatten();
    Ok(removed.map_or(found, |(length, bytes)| {
        (
            SiteReply::Bytes {
                size: bytes.len() as u64,
                length: Some(length),
            },
            bytes,
        )
    }))
}

const fn nothing() -> Answer {
    (
        SiteReply::Bytes {
            size: 0,
            length: None,
        },
        Vec::new(),
    )
}

fn part(path: &Path, offset: u64, most: u64) -> Result<Answer> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(nothing()),
        Err(error) => return Err(failed(path, error)),
    };
    let failed = |error| failed(path, error);
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    if offset < length {
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        file.take(most.min(MOST))
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    Ok((
        SiteReply::Bytes {
            size: bytes.len() as u64,
            length: Some(length),
        },
        bytes,
    ))
}

/// A path of a run's folder, and of nothing else.
fn below(stage: &StageFolder, run: &RunId, path: &str) -> Result<PathBuf> {
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
    let whole = stage.run(run).root().join(path);
    // A link is followed where it stays in the stage; elsewhere it could lead to anything.
    let Ok(real) = whole.canonicalize() else {
        return Ok(whole);
    };
    if stage
        .root()
        .canonicalize()
        .is_ok_and(|root| real.starts_with(root))
    {
        return Ok(real);
    }
    let error = Error::refused(format!(
        "{} leads to {}, outside the run's folder",
        path.display(),
        real.display()
    ));
    Err(error.hint("copy it from there"))
}

pub(super) fn list(stage: &StageFolder, run: &RunId, path: &str) -> Result<Vec<FileEntry>> {
    let root = below(stage, run, path)?;
    let mut listed = Vec::new();
    let mut todo = vec![root.clone()];
    while let Some(path) = todo.pop() {
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(&path, error)),
        };
        // A name that is not UTF-8 cannot be told in JSON, and is left out.
        let Some(name) = path.strip_prefix(&root).ok().and_then(Path::to_str) else {
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
        if listed.len() > MOST_ENTRIES {
            return Err(Error::refused(format!(
                "{} holds more than {MOST_ENTRIES} files",
                root.display()
            ))
            .hint("name a folder below it"));
        }
    }
    if let Some(code) = RemovedCode::of(stage, run)? {
        code.add_to(path, &mut listed);
    }
    listed.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(listed)
}
