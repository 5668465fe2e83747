//! The acts on a workspace, on the machine that has it.

mod keeping;
mod restoring;

use crate::place::{self, Backups};
use crate::{Datastores, setup};
use keeping::not_dropped;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use towline_core::redact::SecretSet;
use towline_core::time::Moment;
use towline_core::workspace::Keep;
use towline_core::{Error, Result};
use towline_host::filesystem::{private_folder, remove_tree};
use towline_host::lock;
use towline_host::surroundings;
use towline_snapshot::backup::{self, Listed};
use towline_snapshot::digest::Digest;
use towline_snapshot::pack::Compression;
use towline_snapshot::problem::Problem;
use towline_snapshot::progress::Progress;
use towline_snapshot::root::Summary;
use towline_snapshot::rules::{Rules, Why};
use towline_snapshot::store::Blob;
use towline_snapshot::take::Options;
use towline_snapshot::walk::Limits;
use towline_wire::layout::StateFolder;
use towline_wire::workspace::{Act, BackedUp, BackupRow, Outcome, ScratchOrder};

/// How long unneeded content stays, because others may be backing up to the same place.
const DELETION_GRACE_MILLIS: i64 = 24 * 3_600_000;

/// A part of a backup takes less time to write: an older one was left by a killed process.
const STALE_PART: i64 = 3_600_000;

/// Does what is asked. `say` gets lines that commands of the user's write.
pub fn perform(
    order: &ScratchOrder,
    secrets: &SecretSet,
    datastores: Datastores,
    progress: &Progress,
    say: &mut dyn FnMut(String),
) -> Result<Outcome> {
    let state = StateFolder::new(surroundings::state_folder()?);
    let workspace = Here {
        order,
        folder: place::expand(&order.path)?,
        backups: place::backups(&state, &order.name, &order.to, (datastores, secrets))?,
        state,
        progress,
    };
    match &order.act {
        Act::Create { setup } => workspace.create(setup, say),
        Act::BackUp { keep, anyway } => workspace.back_up(keep.as_ref(), *anyway),
        Act::Restore {
            backup,
            only,
            setup,
        } => workspace.restore(backup.as_deref(), only, setup, say),
        Act::List => Ok(Outcome::Listed(
            workspace.list()?.iter().rev().map(row).collect(),
        )),
        Act::Check { backup, repair } => workspace.check(backup.as_deref(), *repair),
        Act::Prune { keep, dry_run } => Ok(Outcome::Pruned(workspace.prune(keep, *dry_run)?)),
    }
}

struct Here<'a> {
    order: &'a ScratchOrder,
    folder: std::path::PathBuf,
    backups: Backups,
    state: StateFolder,
    progress: &'a Progress,
}

fn row(listed: &Listed) -> BackupRow {
    let readable = listed.summary.is_some();
    let Summary {
        taken,
        host,
        folder,
        files,
        bytes,
        stored,
        doubtful,
        ..
    } = listed.summary.clone().unwrap_or_default();
    let taken = if readable { taken } else { listed.at };
    BackupRow {
        id: listed.blob.digest().short(),
        taken: Moment(taken),
        host,
        folder,
        files,
        bytes,
        stored,
        doubtful,
        readable,
    }
}

fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Explains a problem in terms of a workspace.
fn explained(problem: Problem) -> Error {
    let text = problem.to_string();
    match problem {
        Problem::Empty(_) => Error::refused(text).hint(
            "has the disk been emptied, or is it not \
            mounted? `tow scratch restore` brings the last backup",
        ),
        Problem::Damaged { .. } | Problem::NoPack(_) => Error::refused(text).hint(
            "`tow scratch check` says which files that touches; an older \
                backup may have them",
        ),
        Problem::NoSnapshot(_) => Error::not_found(text).hint("`tow scratch ls` lists the backups"),
        Problem::NoRoom { .. } => Error::no_room(text),
        Problem::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            Error::no_room(text).hint(
                "the disk is full: `tow scratch prune` makes room; the \
                backups that are listed are whole",
            )
        }
        other => Error::from(other),
    }
}

impl Here<'_> {
    /// The lock of the workspace: one act at a time on this machine.
    fn lock(&self) -> Result<Option<File>> {
        let path = self.state.workspace(&self.order.name, "lock");
        let failed = |error| Error::from_io(format!("{} cannot be used", path.display()), error);
        path.parent()
            .map_or(Ok(()), private_folder)
            .map_err(failed)?;
        let file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        Ok(lock::try_lock(&file).map_err(failed)?.then_some(file))
    }

    fn create(&self, commands: &[String], say: &mut dyn FnMut(String)) -> Result<Outcome> {
        self.refuse_inside()?;
        let failed =
            |error| Error::from_io(format!("{} cannot be made", self.folder.display()), error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        setup::run(&self.folder, commands, say)?;
        // A set-up may write elsewhere: `../env`, `~/.bashrc`.
        let has_files = fs::read_dir(&self.folder).map_err(failed)?.next().is_some();
        Ok(Outcome::Created {
            path: self.folder.display().to_string(),
            has_files,
        })
    }

    /// The folder and the place of its backups.
    fn place(&self, anyway: bool) -> backup::Place {
        backup::Place {
            host: surroundings::host_name(),
            folder: self.folder.display().to_string(),
            to: self.backups.shown.clone(),
            anyway,
        }
    }

    fn back_up(&self, keep: Option<&Keep>, anyway: bool) -> Result<Outcome> {
        let Some(_lock) = self.lock()? else {
            return Ok(Outcome::Busy);
        };
        self.refuse_inside()?;
        if !self.folder.is_dir() {
            return Err(Error::refused(format!(
                "{} is not there: there is nothing to back up",
                self.folder.display()
            ))
            .hint("is the disk mounted? `tow scratch restore` brings the last backup"));
        }
        self.backups
            .clear_parts(towline_host::clock::now().0 - STALE_PART);
        let rules = Rules::of_workspace(&self.folder, &self.order.ignore)?;
        let tree =
            Digest::of(format!("{}\n{}", self.folder.display(), self.backups.shown).as_bytes())
                .short();
        let options = Options {
            limits: Limits::none(),
            compression: Compression::SMALL,
            name: self.order.name.clone(),
            now: towline_host::clock::nanoseconds(),
            stat_cache: self.state.stat_cache(&format!("workspace-{tree}")),
            index: self.backups.index.clone(),
        };
        let made = backup::back_up(
            &self.folder,
            &rules,
            &*self.backups.store,
            &options,
            &self.place(anyway),
            self.progress,
        );
        let made = made.map_err(|problem| self.explained(problem))?;
        let (unreadable, left_out): (Vec<_>, Vec<_>) = made
            .left_out
            .iter()
            .partition(|left| left.why == Why::Unreadable);
        let pruned = match keep.filter(|_| !made.was_there) {
            Some(keep) => Some(
                self.prune(keep, false)
                    .map_err(|error| not_dropped(&error))?,
            ),
            None => None,
        };
        let at = if let Blob::Backup(at, _) = made.blob {
            at
        } else {
            0
        };
        Ok(Outcome::BackedUp(BackedUp {
            backup: row(&Listed {
                blob: made.blob,
                at,
                size: 0,
                summary: Some(made.summary),
            }),
            unchanged: made.was_there,
            read: made.read as u64,
            left_out: left_out
                .iter()
                .map(|left| format!("{}: {}", lossy(&left.path), left.why))
                .collect(),
            unreadable: unreadable.iter().map(|left| lossy(&left.path)).collect(),
            unsteady: made.unsteady,
            place: self.backups.shown.clone(),
            same_disk: place::is_same_disk(&self.folder, &self.backups),
            pruned,
        }))
    }

    fn explained(&self, problem: Problem) -> Error {
        let name = &self.order.name;
        match problem {
            Problem::Overtaken { mark, newest, .. } => {
                let continues = match mark {
                    Some(mark) if mark.in_part => format!(
                        "only a part of backup {} was brought back to it",
                        mark.id.short()
                    ),
                    Some(mark) => format!(
                        "it continues backup {} of {}",
                        mark.id.short(),
                        Moment(mark.at)
                    ),
                    None => "it was not made from that one".to_owned(),
                };
                let BackupRow {
                    id,
                    taken,
                    host,
                    folder,
                    ..
                } = row(&newest);
                Error::conflict(format!(
                    "{} is not what the newest backup {id} is of, which was made on {host} of \
                        {folder} at {taken}: {continues}; nothing was stored",
                    self.folder.display()
                ))
                .hint(format!(
                    "to look at the newest: `tow scratch restore {name} --path FOLDER`"
                ))
                .hint(format!(
                    "to make this folder the newest backup all the same: `tow scratch \
                    backup {name} --anyway`; the others stay"
                ))
            }
            other => explained(other),
        }
    }

    /// Refuses backups inside the workspace, because they would be backed up, and lost with it.
    fn refuse_inside(&self) -> Result<()> {
        match &self.backups.folder {
            Some(folder) if place::real(folder).starts_with(place::real(&self.folder)) => {
                Err(Error::config(format!(
                    "the backups would lie in the workspace itself: {}",
                    folder.display()
                ))
                .hint("`to` names a place outside of it"))
            }
            _ => Ok(()),
        }
    }

    fn list(&self) -> Result<Vec<Listed>> {
        backup::list(&*self.backups.store).map_err(explained)
    }

    /// The backup whose id begins with the text; without one, the newest.
    fn find(&self, id: Option<&str>) -> Result<Listed> {
        let listed = self.list()?;
        let Some(text) = id.filter(|id| *id != "latest") else {
            let none = || {
                Error::not_found(format!(
                    "there is no backup of `{}` at {}",
                    self.order.name, self.backups.shown
                ))
            };
            return listed.into_iter().last().ok_or_else(|| {
                none().hint(format!(
                    "`tow scratch backup {}` makes one",
                    self.order.name
                ))
            });
        };
        let found: Vec<&Listed> = listed
            .iter()
            .filter(|listed| listed.blob.digest().to_string().starts_with(text))
            .collect();
        let missing = || {
            Error::not_found(format!(
                "there is no backup `{text}` at {}",
                self.backups.shown
            ))
            .hint("`tow scratch ls` lists them")
        };
        let newest = found
            .last()
            .filter(|_| text.len() >= 4)
            .ok_or_else(missing)?;
        if found
            .iter()
            .any(|other| other.blob.digest() != newest.blob.digest())
        {
            return Err(
                Error::not_found(format!("several backups begin with `{text}`"))
                    .hint("`tow scratch ls` shows more of each id"),
            );
        }
        Ok((*newest).clone())
    }
}

/// Removes what killed restores left. We hold the lock, so no restore is at work.
fn clear_parts(parent: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    let marks = [format!(".{name}.restored-"), format!("..{name}.restored-")];
    for entry in entries.flatten() {
        let found = entry.file_name().to_string_lossy().into_owned();
        if marks.iter().any(|mark| found.starts_with(mark)) {
            let _ = remove_tree(&entry.path());
        }
    }
}
