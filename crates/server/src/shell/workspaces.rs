//! Automatic backups: each starts when it is due, as a process of its own. The schedule and the
//! last outcome are on disk, so a later daemon goes on from there.

use super::log;
use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use towline_core::quantity::Span;
use towline_core::time::Moment;
use towline_core::workspace::due;
use towline_host::once::replace;
use towline_wire::layout::StateFolder;
use towline_wire::workspace::{Auto, BACKUP_VERB, BackupStatus, Failing};

/// After a failure the next backup comes at most this much later.
const AFTER_FAILURE: Span = Span(5 * 60);

#[derive(Debug, Default)]
pub(super) struct Workspaces {
    wanted: BTreeMap<String, Wanted>,
    /// Running backups of workspaces that need no further backup.
    leaving: Vec<Child>,
}

#[derive(Debug)]
struct Wanted {
    every: Span,
    /// When the last backup began, by the system clock.
    last: Option<Moment>,
    /// The same by a monotonic clock, if this daemon began it.
    began: Option<Instant>,
    failed: bool,
    running: Option<Child>,
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

impl Workspaces {
    pub(super) fn load(&mut self, state: &StateFolder) {
        let entries = match towline_host::filesystem::entries(&state.workspaces()) {
            Ok(entries) => entries,
            // The schedule known so far stays.
            Err(error) => {
                return log(&format!("the folder of workspaces cannot be read: {error}"));
            }
        };
        let names: Vec<String> = entries
            .into_iter()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        let mut before = std::mem::take(&mut self.wanted);
        for name in names {
            let Some(auto) = read::<Auto>(&state.workspace(&name, "auto")) else {
                continue;
            };
            let status: BackupStatus = read(&state.workspace(&name, "status")).unwrap_or_default();
            let known = before.remove(&name);
            let (began, running) = known.map_or((None, None), |known| (known.began, known.running));
            self.wanted.insert(
                name,
                Wanted {
                    every: auto.every,
                    last: status.began,
                    began,
                    failed: status.failing.is_some(),
                    running,
                },
            );
        }
        self.leaving
            .extend(before.into_values().filter_map(|wanted| wanted.running));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Reads the schedule again. Returns how many workspaces are backed up.
    pub(super) fn changed(&mut self, state: &StateFolder) -> usize {
        self.load(state);
        self.look(state);
        self.wanted.len()
    }

    /// Starts the backups that are due.
    pub(super) fn look(&mut self, state: &StateFolder) {
        let now = towline_host::clock::now();
        self.leaving
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        for (name, wanted) in &mut self.wanted {
            if let Some(child) = &mut wanted.running {
                match child.try_wait() {
                    Ok(None) => continue,
                    Ok(Some(ended)) => wanted.failed = how_it_went(state, name, wanted.last, ended),
                    // Its outcome will never be known, which must not block the next backup.
                    Err(error) => log(&format!(
                        "the outcome of the backup of workspace {name} is unknown: {error}"
                    )),
                }
                wanted.running = None;
            }
            if wanted.is_due(now) {
                wanted.last = Some(now);
                wanted.began = Some(Instant::now());
                match begin(state, name) {
                    Ok(child) => wanted.running = Some(child),
                    Err(error) => log(&format!(
                        "the backup of workspace {name} cannot be started: {error}"
                    )),
                }
            }
        }
    }
}

impl Wanted {
    fn is_due(&self, now: Moment) -> bool {
        let every = if self.failed {
            self.every.min(AFTER_FAILURE)
        } else {
            self.every
        };
        let by_wall = due(now, every, self.last) <= now;
        // If the system clock is set back, the monotonic clock still makes the backup due.
        let by_ours = self
            .began
            .is_some_and(|began| began.elapsed() >= Duration::from_secs(every.0));
        by_wall || by_ours
    }
}

/// Whether the last backup failed. A backup that was killed could not record that itself.
fn how_it_went(state: &StateFolder, name: &str, began: Option<Moment>, ended: ExitStatus) -> bool {
    let file = state.workspace(name, "status");
    let status: BackupStatus = read(&file).unwrap_or_default();
    let Some(signal) = ended.signal() else {
        return status.failing.is_some();
    };
    let now = towline_host::clock::now();
    let (since, times) = status
        .failing
        .as_ref()
        .map_or((began.unwrap_or(now), 0), |failing| {
            (failing.since, failing.times)
        });
    let hints =
        vec!["the last good backup is unchanged; the next one continues from it".to_owned()];
    let failing = Failing {
        since,
        last: now,
        times: times + 1,
        why: format!("the backup was killed by signal {signal}"),
        hints,
    };
    let status = BackupStatus {
        began: began.or(status.began),
        failing: Some(failing),
        ..status
    };
    let written = serde_json::to_vec(&status)
        .map_err(std::io::Error::other)
        .and_then(|bytes| replace(&file, &bytes));
    if let Err(error) = written {
        log(&format!(
            "the status of workspace {name} cannot be written: {error}"
        ));
    }
    true
}

#[expect(
    clippy::disallowed_methods,
    reason = "the daemon starts this program again, as a backup"
)]
fn begin(state: &StateFolder, name: &str) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(BACKUP_VERB).arg(state.root()).arg(name);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
}
