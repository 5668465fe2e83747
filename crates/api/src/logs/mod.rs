//! The logs of a run, as files: which there are, lines by their numbers, searches.

pub mod index;
mod lines;
mod scan;
mod search;

use crate::replies::Caller;
use crate::runs::fresh::is_far;
use std::path::PathBuf;
use std::time::Duration;
use towline_core::{Error, ErrorKind, Result};
use towline_engine::history::History;
use towline_wire::api::envelope::Reply;
use towline_wire::api::log::{Log, LogRef, Logs, LogsList};
use towline_wire::daemon::Request;
use towline_wire::layout::StateFolder;
use towline_wire::log_name::LogName;

/// How long to wait for the new bytes of a far run before the local copy is shown.
const BRING_TIMEOUT: Duration = Duration::from_secs(20);

/// The file of a log.
pub(crate) fn file(state: &StateFolder, log: &LogRef) -> PathBuf {
    state.log(&log.run, log.attempt, log.source)
}

/// A log for reading; `None` if it is not there. A link is not followed.
pub fn open(state: &StateFolder, log: &LogRef) -> std::io::Result<Option<std::fs::File>> {
    index::open(&file(state, log))
}

/// The logs of a run, by attempt, set-up before ranks. For a far run, its new bytes are fetched
/// first; if its cluster cannot be reached, a note says so.
pub fn list(state: &StateFolder, ask: &LogsList, caller: &mut dyn Caller) -> Result<Logs> {
    let history = History::open_reader(&state.history())?;
    let known = history.as_ref().map(|history| history.knows(&ask.run));
    let Some(history) = history.filter(|_| matches!(known, Some(Ok(true)))) else {
        known.transpose()?;
        return Err(Error::not_found(format!("there is no run {}", ask.run)));
    };
    if is_far(&history, &ask.run)? {
        bring(state, ask, caller)?;
    }
    Ok(Logs {
        logs: found(state, ask)?,
    })
}

fn bring(state: &StateFolder, ask: &LogsList, caller: &mut dyn Caller) -> Result<()> {
    let request = || Request::BringLogs {
        run: ask.run.clone(),
    };
    match towline_client::ask_within(state, &request, BRING_TIMEOUT) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::Unreachable => {
            caller.reply(Reply::Note(format!(
                "{error}; the lines below were fetched earlier"
            )));
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn found(state: &StateFolder, ask: &LogsList) -> Result<Vec<Log>> {
    let folder = state.run(&ask.run);
    let entries = towline_host::filesystem::entries(&folder).map_err(|error| {
        let text = format!("the folder of {} cannot be read", ask.run);
        Error::from_io(text, error)
    })?;
    let mut logs: Vec<Log> = entries
        .into_iter()
        .filter_map(|entry| {
            let name = LogName::from_file(entry.file_name().to_str()?)?;
            Some(Log {
                attempt: name.attempt,
                source: name.source,
                bytes: entry.metadata().map_or(0, |metadata| metadata.len()),
            })
        })
        .collect();
    logs.sort_by_key(|log| {
        let is_rank = matches!(log.source, towline_core::cluster::LogSource::Rank(_));
        (log.attempt, is_rank, log.source)
    });
    Ok(logs)
}
