//! The `--json` output about workspaces: times as text, everything by its name.

use serde::Serialize;
use towline_core::time::Moment;
use towline_wire::workspace::{BackedUp, BackupRow, BackupStatus, Checked, Failing, Pruned};

#[derive(Serialize)]
pub(super) struct Backup<'a> {
    id: &'a str,
    taken: String,
    host: &'a str,
    folder: &'a str,
    files: u64,
    bytes: u64,
    stored: u64,
    doubtful: u64,
    readable: bool,
}

impl<'a> From<&'a BackupRow> for Backup<'a> {
    fn from(row: &'a BackupRow) -> Self {
        let BackupRow {
            id,
            taken,
            host,
            folder,
            files,
            bytes,
            stored,
            doubtful,
            readable,
        } = row;
        let (files, bytes, stored, doubtful, readable) =
            (*files, *bytes, *stored, *doubtful, *readable);
        Self {
            id,
            taken: taken.to_string(),
            host,
            folder,
            files,
            bytes,
            stored,
            doubtful,
            readable,
        }
    }
}

pub(super) fn backups(rows: &[BackupRow]) -> Vec<Backup<'_>> {
    rows.iter().map(Backup::from).collect()
}

#[derive(Serialize)]
pub(super) struct Status<'a> {
    began: Option<String>,
    good: Option<String>,
    stored: Option<String>,
    backup: Option<Backup<'a>>,
    failing: Option<Failure<'a>>,
}

#[derive(Serialize)]
struct Failure<'a> {
    since: String,
    last: String,
    times: u32,
    why: &'a str,
    hints: &'a [String],
}

impl<'a> From<&'a BackupStatus> for Status<'a> {
    fn from(status: &'a BackupStatus) -> Self {
        let text = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
        let failing = |Failing {
                           since,
                           last,
                           times,
                           why,
                           hints,
                       }: &'a Failing| Failure {
            since: since.to_string(),
            last: last.to_string(),
            times: *times,
            why,
            hints,
        };
        let backup = status.backup.as_ref().map(Backup::from);
        Self {
            began: text(status.began),
            good: text(status.good),
            stored: text(status.stored),
            backup,
            failing: status.failing.as_ref().map(failing),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Made<'a> {
    backup: Backup<'a>,
    unchanged: bool,
    read: u64,
    left_out: &'a [String],
    unreadable: &'a [String],
    unsteady: &'a [String],
    place: &'a str,
    same_disk: bool,
}

impl<'a> From<&'a BackedUp> for Made<'a> {
    fn from(made: &'a BackedUp) -> Self {
        let BackedUp {
            backup,
            unchanged,
            read,
            left_out,
            unreadable,
            unsteady,
            place,
            same_disk,
            ..
        } = made;
        Self {
            backup: backup.into(),
            unchanged: *unchanged,
            read: *read,
            left_out,
            unreadable,
            unsteady,
            place,
            same_disk: *same_disk,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Found<'a> {
    ok: bool,
    backups: usize,
    packs: usize,
    bytes: u64,
    damage: Vec<Damaged<'a>>,
    dropped: usize,
}

#[derive(Serialize)]
struct Damaged<'a> {
    what: &'a str,
    how: &'a str,
    touches: Vec<Touched<'a>>,
    set_aside: bool,
}

#[derive(Serialize)]
struct Touched<'a> {
    backup: &'a str,
    files: &'a [String],
}

impl<'a> From<&'a Checked> for Found<'a> {
    fn from(checked: &'a Checked) -> Self {
        let touched = |(backup, files): &'a (String, Vec<String>)| Touched { backup, files };
        let damage = checked.damage.iter().map(|damage| Damaged {
            what: &damage.what,
            how: &damage.how,
            touches: damage.touches.iter().map(touched).collect(),
            set_aside: damage.is_set_aside,
        });
        let Checked {
            backups,
            packs,
            bytes,
            dropped,
            ..
        } = *checked;
        Self {
            ok: checked.damage.iter().all(|damage| damage.is_set_aside),
            backups,
            packs,
            bytes,
            damage: damage.collect(),
            dropped,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Dropped<'a> {
    kept: usize,
    dropped: Vec<Backup<'a>>,
    packs: usize,
    marked: usize,
    bytes: u64,
    done: bool,
}

impl<'a> From<&'a Pruned> for Dropped<'a> {
    fn from(pruned: &'a Pruned) -> Self {
        let Pruned {
            kept,
            packs,
            marked,
            bytes,
            done,
            ..
        } = *pruned;
        Self {
            kept,
            dropped: backups(&pruned.dropped),
            packs,
            marked,
            bytes,
            done,
        }
    }
}
