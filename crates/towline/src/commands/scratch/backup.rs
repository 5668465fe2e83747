//! `tow scratch backup`: stores the changes since the last backup, completely or not at all.

use super::super::Report;
use super::{described, few, moved, size};
use crate::context::Context;
use crate::scratch::{self, Known};
use towline_core::{ErrorKind, Result};
use towline_wire::report::scratch::BackupMade;
use towline_wire::workspace::{Act, Outcome};

/// Back up a workspace now. Unchanged content is not stored again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch backup
  tow scratch backup work --json
  tow scratch backup work --anyway    although another copy of it was backed up since")]
pub(crate) struct Args {
    /// The workspace [default: the only one].
    name: Option<String>,
    /// The machine that has it now.
    #[arg(long, value_name = "HOST")]
    on: Option<String>,
    /// Make it the newest backup even if the newest belongs to another copy of the workspace.
    #[arg(long)]
    anyway: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let known = moved(
        scratch::choose(context, args.name.as_deref())?,
        args.on.as_deref(),
    );
    let made = back_up(context, &known, args.anyway)?;
    let report = hints(&known.name, &made)
        .into_iter()
        .fold(Report::of(&made, text), Report::hint);
    Ok(if made.unreadable.is_empty() {
        report
    } else {
        report.code(ErrorKind::Refused.exit_code())
    })
}

pub(super) fn back_up(context: &Context, known: &Known, anyway: bool) -> Result<BackupMade> {
    let task = scratch::task(
        context,
        &known.name,
        &known.workspace,
        Act::BackUp { keep: None, anyway },
    )?;
    match scratch::back_up(context, &task)? {
        Outcome::BackedUp(made) => Ok(BackupMade::from(&made)),
        other => super::unexpected(&known.name, &other),
    }
}

pub(super) fn text(made: &BackupMade) -> String {
    let mut text = if made.unchanged {
        format!(
            "nothing changed since backup {} at {}\n",
            made.backup.id, made.place
        )
    } else {
        format!(
            "backup {}, {} new, at {}\n",
            described(&made.backup),
            size(made.backup.stored),
            made.place
        )
    };
    if !made.unreadable.is_empty() {
        text += &format!(
            "NOT backed up, because it cannot be read: {}\n",
            few(&made.unreadable)
        );
    }
    if !made.unsteady.is_empty() {
        text += &format!("kept changing while it was read: {}\n", few(&made.unsteady));
    }
    text
}

/// What to do about what could not be read.
pub(super) fn hints(name: &str, made: &BackupMade) -> Option<String> {
    let is_whole = made.unreadable.is_empty();
    (!is_whole).then(|| {
        format!(
            "give yourself the right to read it, or leave it out: `ignore` of workspace `{name}`"
        )
    })
}

/// What is worth saying once.
pub(super) fn advice(name: &str, made: &BackupMade) -> Vec<String> {
    let mut advice = Vec::new();
    if made.same_disk {
        advice.push(
            "workspace and backups are on the same disk: `to` can name a folder on another disk, \
                or a datastore"
                .to_owned(),
        );
    }
    advice.push(format!(
        "`tow scratch ls {name}` lists them, `tow scratch restore {name}` brings one back"
    ));
    advice
}
