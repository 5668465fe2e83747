//! `tow scratch auto`: automatic backups.

use super::super::Report;
use crate::context::Context;
use crate::scratch;
use towline_core::quantity::Span;
use towline_core::workspace::MIN_BACKUP_INTERVAL;
use towline_core::{Error, Result};

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
        let was_on = scratch::stop_auto(context.state()?, name)?;
        let text = if was_on {
            format!("workspace `{name}` is no longer backed up automatically\n")
        } else {
            format!("automatic backups of `{name}` were not on\n")
        };
        return Ok(Report::new(
            text,
            &serde_json::json!({ "workspace": name, "auto": false }),
        ));
    }
    if let Some(every) = args.every.filter(|every| *every < MIN_BACKUP_INTERVAL) {
        return Err(Error::usage(format!(
            "every {every} is too often; {MIN_BACKUP_INTERVAL} is the least"
        )));
    }
    let auto = scratch::set_auto(context, &known, args.every)?;
    let keep = known.workspace.keep.unwrap_or_default();
    let text = format!(
        "workspace `{name}` is backed up every {}; kept: {keep}\n",
        auto.every
    );
    let json =
        serde_json::json!({ "workspace": name, "auto": true, "every": auto.every, "keep": keep });
    Ok(Report::new(text, &json)
        .hint("the daemon does it, also after sleep; `tow ps` and `tow scratch ls` show failures")
        .hint(format!("`tow scratch auto {name} --off` ends it")))
}
