//! Removes what nothing needs any more in the stage folder:
//!
//! - Programs. Each version of `tow` uploads itself, and a job starts with the version that
//!   submitted it, however long it waits. A program is removed when no site of that version ran for
//!   a month and no submission that may still start names it. A client of that version uploads it
//!   again.
//! - The code of ended runs, if their head could not remove it.
//! - Snapshots that no submission names and that nobody asked for lately: a client asks which blobs
//!   are missing before it uploads.
//! - Parts of interrupted uploads.

use super::{Site, failed};
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use towline_core::cluster::RunRef;
use towline_core::{Error, Result, RunId};
use towline_runner::far::{ended_code, records};
use towline_slurm::parse::ids::Part;
use towline_slurm::parse::queue::Which;
use towline_slurm::state;
use towline_snapshot::digest::Digest;
use towline_snapshot::root::read;
use towline_snapshot::store::{BlobKind, BlobStore, FolderStore, Stored};
use towline_wire::stage::StageFolder;

const UNUSED_PROGRAM_LIFETIME: Duration = Duration::from_secs(30 * 86_400);
/// Longer than the time between a client's query for missing blobs and the submission that names
/// them.
const UNNAMED_CONTENT_LIFETIME: Duration = Duration::from_secs(2 * 86_400);
/// How often one site tidies.
const TIDY_INTERVAL: Duration = Duration::from_secs(86_400);

impl Site {
    /// Removes unneeded files. Files that cannot be read or removed stay.
    pub(super) fn tidy(&mut self) {
        if self
            .observed
            .tidied
            .is_some_and(|at| at.elapsed() < TIDY_INTERVAL)
        {
            return;
        }
        self.observed.tidied = Some(Instant::now());
        self.withdraw_unwanted();
        let stage = self.stage.clone();
        // In a thread, because a home on the network may be slow.
        let _ = std::thread::Builder::new()
            .name("tidy".into())
            .spawn(move || {
                remove_code(&stage);
                let _ = prune_snapshots(&stage);
                remove_parts(&stage, now());
            });
        let Ok(own) = fs::read_link("/proc/self/exe") else {
            return;
        };
        let now = now();
        // Marked as used today, whenever it was uploaded.
        let _ = File::open(&own).and_then(|file| file.set_modified(now));
        let mut old = self.old_programs(now);
        old.retain(|(name, _)| own.file_name().is_none_or(|own| own != name.as_str()));
        if old.is_empty() {
            return;
        }
        let Some(needed) = self.needed_scripts() else {
            return;
        };
        for (_, path) in old
            .into_iter()
            .filter(|(name, _)| !needed.iter().any(|script| script.contains(name)))
        {
            let _ = fs::remove_file(path);
        }
    }

    /// Cancels jobs that wait or are held although their runs have ended. A controller that was
    /// killed may come back with such jobs.
    fn withdraw_unwanted(&self) {
        let Ok(rows) = self.slurm.queue(&Which {
            user: Some(&self.user),
            states: &["PD"],
            ..Which::default()
        }) else {
            return;
        };
        let mut jobs = Vec::new();
        for id in rows
            .iter()
            .filter(|row| state::native(&row.state) == state::Native::Waiting)
            .flat_map(|row| row.ids().into_iter().map(|id| (id, &row.name)))
        {
            let (id, name) = id;
            let Some(submission) = RunId::try_from(name.clone())
                .ok()
                .filter(|submission| self.stage.plan(submission).exists())
            else {
                continue;
            };
            let run = if let Part::Task(task) = id.part {
                submission.numbered(task)
            } else {
                submission
            };
            if self.is_over(&RunRef::of(&run)).unwrap_or(false) {
                jobs.push(id.to_string());
            }
        }
        if !jobs.is_empty() {
            let _ = self.slurm.cancel(&jobs);
        }
    }

    fn old_programs(&self, now: SystemTime) -> Vec<(String, PathBuf)> {
        let folder = self.stage.program("").parent().map(fs::read_dir);
        let Some(Ok(entries)) = folder else {
            return Vec::new();
        };
        let is_old = |entry: &fs::DirEntry| {
            let changed = entry.metadata().and_then(|meta| meta.modified());
            changed.is_ok_and(|changed| {
                now.duration_since(changed)
                    .is_ok_and(|age| age > UNUSED_PROGRAM_LIFETIME)
            })
        };
        let named = entries
            .flatten()
            .filter(is_old)
            .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
        named
            .filter(|(name, _)| {
                name.strip_prefix("tow-").is_some_and(|digest| {
                    digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
                })
            })
            .collect()
    }

    /// The scripts of submissions that may still start; `None` if not all can be read.
    fn needed_scripts(&self) -> Option<Vec<String>> {
        let mut scripts = Vec::new();
        for entry in fs::read_dir(self.stage.submissions()).ok()? {
            let Some(submission) = entry
                .ok()?
                .file_name()
                .into_string()
                .ok()
                .and_then(|name| RunId::try_from(name).ok())
            else {
                continue;
            };
            if self.is_done(&submission) {
                continue;
            }
            match fs::read_to_string(self.stage.script(&submission)) {
                Ok(script) => scripts.push(script),
                // Not submitted yet: its script will be written later.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
        }
        Some(scripts)
    }

    fn is_done(&self, submission: &RunId) -> bool {
        let Ok(order) = records::order(&self.stage, submission) else {
            return false;
        };
        let is_refused = self.jobs(submission).is_ok_and(|jobs| jobs.is_refused());
        is_refused
            || order
                .plan
                .runs
                .iter()
                .all(|run| self.is_over(&RunRef::of(&run.id)).unwrap_or(false))
    }
}

pub(super) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH
        + Duration::from_millis(u64::try_from(towline_host::clock::now().0).unwrap_or(0))
}

/// Removes the code of every ended run.
fn remove_code(stage: &StageFolder) {
    for entry in fs::read_dir(stage.runs()).into_iter().flatten().flatten() {
        let Some(run) = entry
            .file_name()
            .into_string()
            .ok()
            .and_then(|name| RunId::try_from(name).ok())
        else {
            continue;
        };
        let is_done = ended_code::removed(&stage.run(&run))
            .is_ok_and(|record| record.is_some_and(|record| record.is_done));
        if is_done || !stage.run(&run).code().exists() {
            continue;
        }
        if let Ok(order) = records::order(stage, &RunRef::of(&run).submission) {
            let _ = ended_code::remove(stage, &order, &run, &|| false);
        }
    }
}

/// Removes snapshots that no submission names. A submission that cannot be read stops it, because
/// its snapshot is unknown.
pub(super) fn prune_snapshots(stage: &StageFolder) -> Result<()> {
    let store = FolderStore::new(stage.snapshots());
    let before = towline_host::clock::now().0
        - i64::try_from(UNNAMED_CONTENT_LIFETIME.as_millis()).unwrap_or(i64::MAX);
    let is_young = |stored: &Stored| stored.changed.is_none_or(|changed| changed >= before);
    // Listed before the submissions are read, because a submission that comes meanwhile has renewed
    // the times of its blobs.
    let (roots, packs) = (store.list(BlobKind::Root)?, store.list(BlobKind::Pack)?);
    let named = named_snapshots(stage)?;
    let (kept, gone): (Vec<_>, Vec<_>) = roots
        .into_iter()
        .partition(|stored| is_young(stored) || named.contains(&stored.blob.digest()));
    let mut needed: HashSet<Digest> = HashSet::new();
    for stored in &kept {
        needed.extend(read(&store, &stored.blob)?.packs);
    }
    let unneeded = packs
        .into_iter()
        .filter(|stored| !is_young(stored) && !needed.contains(&stored.blob.digest()));
    let unneeded: Vec<_> = unneeded.map(|stored| stored.blob).collect();
    store.delete(
        &gone
            .into_iter()
            .map(|stored| stored.blob)
            .collect::<Vec<_>>(),
    )?;
    store.delete(&unneeded)?;
    store.clear_incoming_before(before);
    Ok(())
}

fn named_snapshots(stage: &StageFolder) -> Result<HashSet<Digest>> {
    let folder = stage.submissions();
    let mut named = HashSet::new();
    for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
        let entry = entry.map_err(|error| failed(&folder, error))?;
        let Some(submission) = entry
            .file_name()
            .into_string()
            .ok()
            .and_then(|name| RunId::try_from(name).ok())
        else {
            continue;
        };
        match records::order(stage, &submission) {
            Ok(order) => named.extend(
                order
                    .plan
                    .resolved
                    .code
                    .and_then(|code| code.snapshot)
                    .and_then(|snapshot| Digest::parse(&snapshot)),
            ),
            // Not submitted yet: its blobs were asked for just now.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(
                    Error::refused(format!("the plan of {submission} cannot be read"))
                        .source_error(error),
                );
            }
        }
    }
    Ok(named)
}

/// Removes the parts of interrupted program uploads.
fn remove_parts(stage: &StageFolder, now: SystemTime) {
    let program = stage.program("");
    let folder = program.parent().unwrap_or_else(|| Path::new("."));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_part = entry.file_name().to_string_lossy().starts_with(".tow-");
        let changed = entry.metadata().and_then(|meta| meta.modified());
        if is_part
            && changed.is_ok_and(|changed| {
                now.duration_since(changed)
                    .is_ok_and(|age| age > UNNAMED_CONTENT_LIFETIME)
            })
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}
