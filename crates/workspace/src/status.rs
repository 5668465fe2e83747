//! The status of a workspace's backups, and automatic backups: the daemon reads in the state folder
//! which are wanted. The secrets of their credentials are in a file apart.

use crate::{Known, Task};
use std::fs;
use std::io;
use std::path::Path;
use towline_client as client;
use towline_core::quantity::Span;
use towline_core::redact::SecretSet;
use towline_core::time::Moment;
use towline_core::workspace::DEFAULT_BACKUP_INTERVAL;
use towline_core::{Error, Result};
use towline_host::once::replace;
use towline_wire::daemon::Request;
use towline_wire::layout::StateFolder;
use towline_wire::workspace::{Auto, BackupStatus, Failing, Outcome};

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

fn write(state: &StateFolder, name: &str, what: &str, bytes: &[u8]) -> Result<()> {
    let file = state.workspace(name, what);
    let failed =
        |error: io::Error| Error::from_io(format!("{} cannot be written", file.display()), error);
    file.parent()
        .map_or(Ok(()), towline_host::filesystem::private_folder)
        .and_then(|()| replace(&file, bytes))
        .map_err(failed)
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value)
        .map_err(|error| Error::bug("cannot be written as JSON").source_error(error))
}

/// The status of a workspace's backups.
pub fn read_status(state: &StateFolder, name: &str) -> BackupStatus {
    read(&state.workspace(name, "status")).unwrap_or_default()
}

/// The automatic backups of a workspace; `None` if they are off.
pub fn auto(state: &StateFolder, name: &str) -> Option<Auto> {
    read(&state.workspace(name, "auto"))
}

/// Workspaces whose last backup failed. Costs nothing if there are no workspaces.
pub fn failing(state: &StateFolder) -> Vec<(String, Failing)> {
    let Ok(entries) = fs::read_dir(state.workspaces()) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut failing: Vec<_> = names
        .filter_map(|name| {
            read_status(state, &name)
                .failing
                .map(|failing| (name, failing))
        })
        .collect();
    failing.sort_by(|a, b| a.0.cmp(&b.0));
    failing
}

/// Starts the daemon if automatic backups need one: it may have been killed, or the machine was
/// restarted. Costs nothing if none is wanted.
pub fn see_to_autos(state: &StateFolder) {
    let Ok(entries) = fs::read_dir(state.workspaces()) else {
        return;
    };
    let is_wanted = entries
        .flatten()
        .any(|entry| entry.path().join("auto").exists());
    if is_wanted && !towline_host::lock::is_held(&state.daemon_lock()).unwrap_or(false) {
        client::nudge(state);
    }
}

/// Does a backup of that workspace by `perform`, and stores its status.
pub fn back_up(
    state: &StateFolder,
    name: &str,
    perform: impl FnOnce() -> Result<Outcome>,
) -> Result<Outcome> {
    let began = towline_host::clock::now();
    let outcome = perform();
    // A backup that did not begin, because another one is at work, does not change the status.
    if !matches!(outcome, Ok(Outcome::Busy)) {
        write(
            state,
            name,
            "status",
            &json(&next(read_status(state, name), began, &outcome))?,
        )?;
    }
    outcome
}

fn next(before: BackupStatus, began: Moment, outcome: &Result<Outcome>) -> BackupStatus {
    let now = towline_host::clock::now();
    match outcome {
        Ok(Outcome::BackedUp(made)) => BackupStatus {
            began: Some(began),
            good: Some(now),
            stored: if made.unchanged {
                before.stored
            } else {
                Some(now)
            },
            backup: Some(if made.unchanged {
                before.backup.unwrap_or_else(|| made.backup.clone())
            } else {
                made.backup.clone()
            }),
            failing: None,
        },
        Ok(_) => BackupStatus {
            began: Some(began),
            ..before
        },
        Err(error) => {
            let (since, times) = before
                .failing
                .as_ref()
                .map_or((began, 0), |failing| (failing.since, failing.times));
            let failing = Failing {
                since,
                last: now,
                times: times + 1,
                why: error.to_string(),
                hints: error.hints().to_vec(),
            };
            BackupStatus {
                began: Some(began),
                failing: Some(failing),
                ..before
            }
        }
    }
}

/// Has the daemon repeat that backup.
pub fn set_auto(
    state: &StateFolder,
    known: &Known,
    every: Option<Span>,
    task: Task,
) -> Result<Auto> {
    let workspace = &known.workspace;
    let every = every.or(workspace.every).unwrap_or(DEFAULT_BACKUP_INTERVAL);
    let since = auto(state, &known.name).map_or_else(towline_host::clock::now, |auto| auto.since);
    let wanted = Auto {
        every,
        since,
        workspace: workspace.clone(),
        order: task.order,
    };
    // The secrets first: a backup that is wanted must be possible.
    write(
        state,
        &known.name,
        "secrets",
        &task.secrets.to_private_bytes(),
    )?;
    write(state, &known.name, "auto", &json(&wanted)?)?;
    client::ask(state, &|| Request::Workspaces)?;
    Ok(wanted)
}

/// Turns automatic backups off. Returns whether they were on.
pub fn stop_auto(state: &StateFolder, name: &str) -> Result<bool> {
    let mut was_on = false;
    for what in ["auto", "secrets"] {
        let file = state.workspace(name, what);
        match fs::remove_file(&file) {
            Ok(()) => was_on |= what == "auto",
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Error::from_io(
                    format!("{} cannot be removed", file.display()),
                    error,
                ));
            }
        }
    }
    if was_on {
        client::ask(state, &|| Request::Workspaces)?;
    }
    Ok(was_on)
}

/// The automatic backup of that name; `None` when it was turned off meanwhile.
pub fn auto_task(state: &StateFolder, name: &str) -> Option<Task> {
    let Auto {
        workspace, order, ..
    } = auto(state, name)?;
    let secrets = fs::read(state.workspace(name, "secrets"))
        .ok()
        .and_then(|bytes| SecretSet::from_private_bytes(&bytes))
        .unwrap_or_default();
    Some(Task {
        workspace,
        order,
        secrets,
    })
}
