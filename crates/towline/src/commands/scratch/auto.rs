//! `tow scratch auto`: automatic backups.

use super::super::Report;
use crate::context::Context;
use crate::scratch;
use towline_core::quantity::Span;
use towline_core::workspace::MIN_BACKUP_INTERVAL;
use towline_core::{Error, Result};
use towline_wire::report::scratch::AutoBackup;

/// Back up a workspace automatically, every 30 minutes or as often as you say, until turned off.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch auto
  tow scratch auto work --every 10m
  tow scratch auto work --off")]
pub(crate) struct Args {
    /// The workspace [default: the only one].
    name: Option<String>,
    /// How often [default: 30m].
    #[arg(long, value_name = "TIME", conflicts_with = "off")]
    every: Option<Span>,
    /// Turn automatic backups off.
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let known = scratch::choose(context, args.name.as_deref())?;
    let name = &known.name;
    if args.off {
        let answer = AutoBackup {
            workspace: name.clone(),
            auto: false,
            every: None,
            keep: None,
            was_on: Some(scratch::stop_auto(context.state()?, name)?),
        };
        return Ok(Report::of(&answer, text));
    }
    if let Some(every) = args.every.filter(|every| *every < MIN_BACKUP_INTERVAL) {
        return Err(Error::usage(format!(
            "every {every} is too often; {MIN_BACKUP_INTERVAL} is the least"
        )));
    }
    let auto = scratch::set_auto(context, &known, args.every)?;
    let answer = AutoBackup {
        workspace: name.clone(),
        auto: true,
        every: Some(auto.every),
        keep: Some(known.workspace.keep.unwrap_or_default()),
        was_on: None,
    };
    Ok(Report::of(&answer, text)
        .hint("the daemon does it, also after sleep; `tow ps` and `tow scratch ls` show failures")
        .hint(format!("`tow scratch auto {name} --off` ends it")))
}

fn text(answer: &AutoBackup) -> String {
    let name = &answer.workspace;
    match (answer.every, answer.keep) {
        (Some(every), Some(keep)) => {
            format!("workspace `{name}` is backed up every {every}; kept: {keep}\n")
        }
        _ if answer.was_on == Some(true) => {
            format!("workspace `{name}` is no longer backed up automatically\n")
        }
        _ => format!("automatic backups of `{name}` were not on\n"),
    }
}
