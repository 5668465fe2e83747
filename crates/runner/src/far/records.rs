//! The records in a run's folder.

pub use crate::gang::{AttemptRecords, Due, Records};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use towline_core::RunId;
use towline_wire::stage::{Order, Record, RunFolder, StageFolder};

impl Records {
    /// Reads them all. A run without a folder has none.
    pub fn read(folder: &RunFolder) -> io::Result<Self> {
        let mut records = Self::default();
        let entries = match fs::read_dir(folder.root()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(records),
            other => other?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            if name == "cancel" {
                records.cancelled = true;
            }
            let Some((number, word)) = name
                .strip_prefix("attempt-")
                .and_then(|rest| rest.split_once('.'))
            else {
                continue;
            };
            let Ok(attempt) = number.parse() else {
                continue;
            };
            let path = folder.root().join(name);
            let of = records.attempts.entry(attempt).or_default();
            match word {
                "claim" => of.claim = load(&path)?,
                "started" => of.started = load(&path)?,
                "held" => of.held = load(&path)?,
                "end" => of.end = load(&path)?,
                "stop" => of.stop = load(&path)?,
                _ => {}
            }
        }
        records
            .attempts
            .retain(|_, of| *of != AttemptRecords::default());
        Ok(records)
    }
}

/// Removes the secrets of a submission once the last of its runs has ended.
pub fn drop_secrets(stage: &StageFolder, submission: &RunId) {
    let path = stage.secrets(submission);
    if !path.exists() {
        return;
    }
    let Ok(order) = order(stage, submission) else {
        return;
    };
    let policy = order.plan.resolved.retry.as_ref();
    let is_over = |run: &RunId| {
        Records::read(&stage.run(run)).is_ok_and(|found| {
            !found.attempts.is_empty() && matches!(found.due(policy), Due::Nothing(_))
        })
    };
    if order.plan.runs.iter().all(|run| is_over(&run.id)) {
        let _ = fs::remove_file(path);
    }
}

/// Reads a record. An incomplete file counts as missing.
fn load<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// How long to wait before writing a record again on a full disk.
const DISK_FULL_PAUSE: Duration = Duration::from_millis(500);

/// Makes a record, unless it exists.
pub fn make<T: Serialize>(
    folder: &RunFolder,
    attempt: u32,
    what: Record,
    record: &T,
) -> io::Result<bool> {
    create(&folder.record(attempt, what), record)
}

/// Makes a file of a run, unless it exists. On a full disk it waits for space, because an end that
/// is known must not be forgotten; our lease goes on meanwhile.
pub(super) fn create<T: Serialize>(path: &Path, record: &T) -> io::Result<bool> {
    let bytes = serde_json::to_vec(record).map_err(io::Error::other)?;
    loop {
        match towline_host::once::create(path, &bytes) {
            Err(error) if towline_host::filesystem::is_no_room(&error) => {
                std::thread::sleep(DISK_FULL_PAUSE);
            }
            other => return other,
        }
    }
}

/// The order of a submission.
pub fn order(stage: &StageFolder, submission: &RunId) -> io::Result<Order> {
    serde_json::from_slice(&fs::read(stage.plan(submission))?).map_err(io::Error::other)
}
