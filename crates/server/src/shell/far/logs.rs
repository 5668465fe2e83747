//! Logs of far runs, stored here as files like those of local runs. A byte that was fetched is
//! never fetched again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use towline_core::cluster::Cluster;
use towline_core::cluster::{Cursor, RunRef};
use towline_core::{Error, Result};
use towline_wire::layout::StateFolder;

const LOG_CHUNK_BYTES: u64 = 4 << 20;
/// How much to fetch at a time, because the cluster's thread may have other work meanwhile.
const LOG_BATCH_BYTES: u64 = 64 << 20;

/// Appends the new bytes of every log of a run. Returns `false` if there are more: the next call
/// goes on.
pub(super) fn bring(backend: &dyn Cluster, state: &StateFolder, far: &RunRef) -> Result<bool> {
    let logs = backend.logs(far)?;
    let run = &far.run;
    if logs.is_empty() {
        return Ok(true);
    }
    let mut left = LOG_BATCH_BYTES;
    let failed = |error| {
        Error::from_io(
            format!("the logs of {run} cannot be stored on this machine"),
            error,
        )
    };
    towline_host::filesystem::private_folder(&state.run(run)).map_err(failed)?;
    for log in logs {
        let path = state.log(run, log.attempt, log.source);
        let mut have = fs::metadata(&path).map_or(0, |meta| meta.len());
        // The job has truncated the log: its present content counts, as on this machine.
        if have > log.length {
            OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(log.length))
                .map_err(failed)?;
            have = log.length;
        }
        if have == log.length {
            if have == 0 && !path.exists() {
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .mode(0o600)
                    .open(&path)
                    .map_err(failed)?;
            }
            continue;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        while have < log.length {
            let from = Cursor {
                attempt: log.attempt,
                source: log.source,
                offset: have,
            };
            let bytes = backend.log_bytes(far, &from, LOG_CHUNK_BYTES)?.bytes;
            if bytes.is_empty() {
                break;
            }
            file.write_all(&bytes).map_err(failed)?;
            have += bytes.len() as u64;
            left = left.saturating_sub(bytes.len() as u64);
            if left == 0 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
