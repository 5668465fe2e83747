//! `tow scratch`: a workspace on fast scratch, and its backups.

mod auto;
mod backup;
mod check;
mod create;
mod ls;
mod prune;
mod restore;

use super::Report;
use crate::context::Context;
use crate::scratch::Known;
use towline_core::quantity::Memory;
use towline_core::{Error, Result};
use towline_wire::report::scratch::Backup;
use towline_wire::workspace::Outcome;

/// Keep a workspace on fast scratch, with backups.
///
/// A backup is whole or not there at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch create work --on tow-node --path /scratch/$USER/work
  tow scratch backup
  tow scratch auto --every 30m
  tow scratch ls work
  tow scratch restore work            onto a fresh node

A workspace is a folder on this machine, on a host that ssh reaches, or on a node of a run
(`tow-node`, `tow-1a2b3`). Backups hold only what changed, are whole or not there at all, and go to
a folder that machine sees, or to a datastore.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Create(create::Args),
    Restore(restore::Args),
    Backup(backup::Args),
    Auto(auto::Args),
    #[command(visible_alias = "list")]
    Ls(ls::Args),
    Check(check::Args),
    Prune(prune::Args),
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    crate::scratch::see_to_autos(context.state()?);
    match &args.verb {
        Verb::Create(args) => create::run(context, args),
        Verb::Restore(args) => restore::run(context, args),
        Verb::Backup(args) => backup::run(context, args),
        Verb::Auto(args) => auto::run(context, args),
        Verb::Ls(args) => ls::run(context, args),
        Verb::Check(args) => check::run(context, args),
        Verb::Prune(args) => prune::run(context, args),
    }
}

/// The error for an answer that does not match the request.
fn unexpected<T>(name: &str, outcome: &Outcome) -> Result<T> {
    match outcome {
        Outcome::Busy => Err(Error::conflict(format!(
            "workspace `{name}` is being backed up or restored right now"
        ))
        .hint("wait for it, then try again")),
        _ => Err(Error::bug(
            "the answer of the workspace's machine does not match the request",
        )),
    }
}

/// The same workspace, reached through another machine.
fn moved(mut known: Known, on: Option<&str>) -> Known {
    match on {
        Some("this" | "here" | "localhost") => known.workspace.on = None,
        Some(on) => known.workspace.on = Some(on.to_owned()),
        None => {}
    }
    known
}

/// `1 file`, `2341 files`
fn counted(many: u64, one: &str) -> String {
    format!("{many} {one}{}", if many == 1 { "" } else { "s" })
}

/// `12 bytes`, `480M`
fn size(bytes: u64) -> String {
    if bytes < 1024 {
        counted(bytes, "byte")
    } else {
        Memory(bytes).to_string()
    }
}

fn described(backup: &Backup) -> String {
    format!(
        "{} of {}: {}, {}",
        backup.id,
        backup.taken,
        counted(backup.files, "file"),
        size(backup.bytes)
    )
}

/// The machine that has a workspace, unless it is this one.
fn place(on: Option<&str>) -> String {
    on.map(|on| format!(" on {on}")).unwrap_or_default()
}

/// The first few of a list.
fn few(names: &[String]) -> String {
    let mut shown = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 3 {
        shown += &format!(" and {} more", names.len() - 3);
    }
    shown
}
