//! Logs and other files of a run's folder.

use super::Answer;
use super::removed_code::RemovedCode;
use std::path::{Path, PathBuf};
use towline_backends::run_files;
use towline_core::cluster::{FileEntry, LogLength, LogSource};
use towline_core::{Result, RunId};
use towline_wire::log_name::LogName;
use towline_wire::site::SiteReply;
use towline_wire::stage::StageFolder;

/// How much is sent at once: a file of any size needs only this much memory.
const FILE_CHUNK_BYTES: u64 = 4 << 20;
pub(super) fn logs(stage: &StageFolder, run: &RunId) -> Result<Vec<LogLength>> {
    run_files::logs(stage.run(run).root())
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
        &stage
            .run(run)
            .root()
            .join(LogName::new(attempt, source).file()),
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
        .map(|code| code.part(path, offset, most.min(FILE_CHUNK_BYTES)))
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

fn part(path: &Path, offset: u64, most: u64) -> Result<Answer> {
    let found = run_files::part(path, offset, most.min(FILE_CHUNK_BYTES))?;
    Ok((
        SiteReply::Bytes {
            size: found.bytes.len() as u64,
            length: found.length,
        },
        found.bytes,
    ))
}

/// A path inside a run's folder.
fn below(stage: &StageFolder, run: &RunId, path: &str) -> Result<PathBuf> {
    run_files::below(stage.root(), stage.run(run).root(), path)
}

pub(super) fn list(stage: &StageFolder, run: &RunId, path: &str) -> Result<Vec<FileEntry>> {
    let mut listed = run_files::list(&below(stage, run, path)?)?;
    if let Some(code) = RemovedCode::of(stage, run)? {
        code.add_to(path, &mut listed);
        listed.sort_by(|one, other| one.path.cmp(&other.path));
    }
    Ok(listed)
}
