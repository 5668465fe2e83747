//! The logs of a run, as files.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_core::reason::{Cause, Ending};
use towline_core::why::last_lines;
use towline_core::{Error, Result};
use towline_wire::layout::StateFolder;
use towline_wire::log_name::LogName;

#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub(crate) attempt: u32,
    pub(crate) source: LogSource,
    pub(crate) path: PathBuf,
}

/// Every log of a run, by attempt, set-up before ranks.
pub(crate) fn list(state: &StateFolder, run: &RunId) -> Result<Vec<LogFile>> {
    let folder = state.run(run);
    let entries = towline_host::filesystem::entries(&folder);
    let mut files: Vec<LogFile> = entries
        .map_err(|error| {
            Error::from_io(
                format!("the folder of {run}, {}, cannot be read", folder.display()),
                error,
            )
        })?
        .into_iter()
        .filter_map(|entry| {
            let log = LogName::from_file(entry.file_name().to_str()?)?;
            Some(LogFile {
                attempt: log.attempt,
                source: log.source,
                path: entry.path(),
            })
        })
        .collect();
    files.sort_by_key(|file| {
        (
            file.attempt,
            matches!(file.source, LogSource::Rank(_)),
            file.source,
        )
    });
    Ok(files)
}

/// The last `lines` lines of a file, reading from its end.
pub(crate) fn tail_lines(path: &Path, lines: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut window: u64 = 64 << 10;
    loop {
        let start = length.saturating_sub(window);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&mut file).take(length - start).read_to_end(&mut bytes)?;
        let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let breaks: Vec<usize> = body
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at)
            .collect();
        if breaks.len() >= lines {
            return Ok(bytes[breaks[breaks.len() - lines] + 1..].to_vec());
        }
        // For a line of many megabytes only its end is shown.
        if start == 0 || window >= 8 << 20 {
            return Ok(bytes);
        }
        window *= 4;
    }
}

/// The offset at which the last `lines` lines of a file begin; 0 if there is no file.
pub(crate) fn tail_offset(path: &Path, lines: usize) -> io::Result<u64> {
    let Some(before) = towline_host::filesystem::metadata_if_there(path)? else {
        return Ok(0);
    };
    if lines == 0 {
        return Ok(before.len());
    }
    let tail = tail_lines(path, lines)?;
    // It may have grown meanwhile: then a few more lines are shown.
    Ok(before.len().saturating_sub(tail.len() as u64))
}

/// The last `size` bytes of a file; empty if there is no file.
pub(crate) fn tail_bytes(path: &Path, size: u64) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(size)))?;
        let mut bytes = Vec::new();
        file.take(size).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}

/// How many bytes at the end of a log are searched for the cause.
pub(crate) const TAIL_BYTES: u64 = 256 << 10;
/// How many last lines of a failed set-up are shown, because nobody has seen them yet.
const LAST_LINES: usize = 5;

/// The last lines of the set-up logs, if the run failed before any rank began.
pub(crate) fn before_it_began(
    state: &StateFolder,
    run: &RunId,
    attempt: u32,
    ending: &Ending,
) -> Vec<String> {
    if !matches!(
        ending.cause,
        Some(Cause::SetUp | Cause::Data | Cause::ImagePull)
    ) {
        return Vec::new();
    }
    let detail = ending.detail.as_deref().unwrap_or_default();
    let failed = detail.split_once("node ").and_then(|(_, rest)| {
        rest.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    });
    // The ending is shown in any case, even without logs.
    let logs = list(state, run)
        .unwrap_or_default()
        .into_iter()
        .filter(|log| log.attempt == attempt);
    let mut nodes: Vec<LogFile> = logs
        .filter(|log| matches!(log.source, LogSource::SetUp(_)))
        .collect();
    // The node that failed, if that is known; else the first node with output.
    nodes.sort_by_key(|log| failed.is_some_and(|node| log.source != LogSource::SetUp(node)));
    let said = |log: &LogFile| {
        Some(last_lines(&tail_bytes(&log.path, TAIL_BYTES), LAST_LINES))
            .filter(|lines| !lines.is_empty())
    };
    nodes.iter().find_map(said).unwrap_or_default()
}

/// Appends the new bytes of a log to its copy in `assets/<run>/`. A copy that is longer than its
/// log (the job truncated it) is made again; the result says so.
pub(crate) fn copy_new_bytes(log: &LogFile, to: &Path) -> Result<(PathBuf, bool)> {
    let target = to.join(LogName::new(log.attempt, log.source).file());
    let failed = |error| Error::from_io(format!("{} cannot be written", target.display()), error);
    let have = fs::metadata(&target).map_or(0, |metadata| metadata.len());
    let mut from = File::open(&log.path).map_err(failed)?;
    let length = from.metadata().map_err(failed)?.len();
    let truncated = length < have;
    let start = if truncated { 0 } else { have };
    let mut copy = File::options()
        .create(true)
        .write(true)
        .truncate(truncated)
        .open(&target)
        .map_err(failed)?;
    copy.seek(SeekFrom::Start(start)).map_err(failed)?;
    from.seek(SeekFrom::Start(start)).map_err(failed)?;
    io::copy(&mut from, &mut copy).map_err(failed)?;
    Ok((target, truncated))
}
