//! `tow scratch restore`: restores a workspace, for example on a fresh machine.

use super::super::Report;
use super::{described, moved, place};
use crate::context::Context;
use crate::scratch::{self, Known};
use towline_core::workspace::Workspace;
use towline_core::{Error, Result};
use towline_wire::report::scratch::{Backup, WorkspaceRestored};
use towline_wire::workspace::{Act, BackupRow, Outcome};

/// Restore a workspace, onto a fresh node or beside existing files. Never overwrites anything.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch restore                      the newest backup, where the workspace was
  tow scratch restore work --on tow-node
  tow scratch restore work --backup 3f2a --path /scratch/$USER/before
  tow scratch restore work --only src --path /tmp/src-of-yesterday")]
pub(crate) struct Args {
    /// The workspace [default: the only one].
    name: Option<String>,
    /// The backup [default: the newest].
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    /// The machine to restore it on; from then on the workspace is there.
    #[arg(long, value_name = "HOST")]
    on: Option<String>,
    /// Restore into another folder; the workspace itself stays where it is.
    #[arg(long)]
    path: Option<String>,
    /// Only this file or folder; may be given several times.
    #[arg(long, value_name = "PATH", requires = "path")]
    only: Vec<String>,
    /// Set up its environment again too.
    #[arg(long)]
    setup: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let known = moved(
        scratch::choose(context, args.name.as_deref())?,
        args.on.as_deref(),
    );
    let path = args
        .path
        .clone()
        .unwrap_or_else(|| known.workspace.path.clone());
    let setup = if args.setup {
        known.workspace.setup.clone()
    } else {
        Vec::new()
    };
    let target = Workspace {
        path,
        ..known.workspace.clone()
    };
    let task = scratch::task(
        context,
        &known.name,
        &target,
        Act::Restore {
            backup: args.backup.clone(),
            only: args.only.clone(),
            setup,
        },
    )?;
    let (path, backup, newest) = match scratch::perform(context, &task)? {
        Outcome::Restored {
            path,
            backup,
            newest,
        } => (path, backup, newest),
        // A node that has the workspace still: who only wants to work there has what they want.
        Outcome::NotEmpty { newer: None, .. } if args.path.is_none() && args.backup.is_none() => {
            return Ok(kept(known, target));
        }
        Outcome::NotEmpty { path, newer } => {
            return Err(not_empty(
                &path,
                newer.filter(|_| args.path.is_none()).as_ref(),
            ));
        }
        other => return super::unexpected(&known.name, &other),
    };
    let mut hints = Vec::new();
    if let Some(newest) = newest.filter(|_| args.path.is_none()) {
        hints.push(format!(
            "backup {} of {} is newer: what you change here becomes the newest with `tow scratch \
                backup {} --anyway`",
            newest.id, newest.taken, known.name
        ));
    }
    if args.on.is_some() && args.path.is_none() {
        hints.extend(settle(context, &known)?);
    }
    let answer = WorkspaceRestored {
        workspace: known.name,
        path,
        on: known.workspace.on,
        backup: Some(Backup::from(&backup)),
    };
    let report = Report::of(&answer, text);
    Ok(hints.into_iter().fold(report, Report::hint))
}

fn text(answer: &WorkspaceRestored) -> String {
    let path = &answer.path;
    let place = place(answer.on.as_deref());
    match &answer.backup {
        Some(backup) => format!("restored to {path}{place}: backup {}\n", described(backup)),
        None => format!(
            "`{}` is still there: {path}{place}; nothing was changed\n",
            answer.workspace
        ),
    }
}

/// The error if the target is not empty, because nothing is overwritten.
fn not_empty(path: &str, newer: Option<&BackupRow>) -> Error {
    let error = Error::conflict(match newer {
        Some(BackupRow {
            id, taken, host, ..
        }) => {
            format!(
                "{path} is not empty, and older than the newest backup {id}, which was made on \
                    {host} at {taken}; nothing was changed"
            )
        }
        None => format!("{path} is not empty; nothing was changed"),
    });
    error.hint("move it away, or restore beside it with `--path`")
}

fn kept(known: Known, target: Workspace) -> Report {
    let answer = WorkspaceRestored {
        workspace: known.name,
        path: target.path,
        on: known.workspace.on,
        backup: None,
    };
    Report::of(&answer, text)
        .hint("go on working there; a backup beside it: `tow scratch restore --path FOLDER`")
}

/// Records that the workspace is now on another machine, also for automatic backups.
fn settle(context: &Context, known: &Known) -> Result<Vec<String>> {
    if known.file.is_none() {
        let on = known.workspace.on.as_deref().unwrap_or("this machine");
        return Ok(vec![format!(
            "your configuration has the workspace elsewhere: write `on: {on}` there"
        )]);
    }
    scratch::save(context, &known.name, &known.workspace)?;
    if scratch::auto(context.state()?, &known.name).is_some() {
        scratch::set_auto(context, known, None)?;
    }
    Ok(Vec::new())
}
