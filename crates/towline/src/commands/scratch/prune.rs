//! `tow scratch prune`: shows a plan, then drops the backups that the policy does not keep.

use super::super::Report;
use super::{counted, described, moved, size};
use crate::context::Context;
use crate::scratch;
use towline_core::Result;
use towline_core::workspace::Keep;
use towline_wire::report::scratch::BackupsPruned;
use towline_wire::workspace::{Act, Outcome};

/// Drop backups that the policy does not keep. Shows the plan; `--yes` carries it out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch prune                       what would go
  tow scratch prune work --keep-daily 30 --yes")]
pub(crate) struct Args {
    /// The workspace [default: the only one].
    name: Option<String>,
    /// Keep this many of the newest backups [default: 10].
    #[arg(long, value_name = "N")]
    keep_last: Option<u32>,
    /// Also keep the newest of each of this many hours [default: 24].
    #[arg(long, value_name = "N")]
    keep_hourly: Option<u32>,
    /// Also keep the newest of each of this many days [default: 14].
    #[arg(long, value_name = "N")]
    keep_daily: Option<u32>,
    /// Also keep the newest of each of this many weeks [default: 8].
    #[arg(long, value_name = "N")]
    keep_weekly: Option<u32>,
    /// Only show the plan, as without `--yes`.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Carry out the plan.
    #[arg(long)]
    yes: bool,
    /// A machine that can read the backups.
    #[arg(long, value_name = "HOST")]
    on: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let known = moved(
        scratch::choose(context, args.name.as_deref())?,
        args.on.as_deref(),
    );
    let usual = known.workspace.keep.unwrap_or_default();
    let keep = Keep {
        last: args.keep_last.unwrap_or(usual.last),
        hourly: args.keep_hourly.unwrap_or(usual.hourly),
        daily: args.keep_daily.unwrap_or(usual.daily),
        weekly: args.keep_weekly.unwrap_or(usual.weekly),
    };
    let task = scratch::task(
        context,
        &known.name,
        &known.workspace,
        Act::Prune {
            keep,
            dry_run: !args.yes,
        },
    )?;
    match scratch::perform_from_here(context, task)? {
        Outcome::Pruned(pruned) => Ok(report(&BackupsPruned::new(&pruned, keep))),
        other => super::unexpected(&known.name, &other),
    }
}

fn report(answer: &BackupsPruned) -> Report {
    let report = Report::of(answer, text);
    if report.text.is_empty() {
        report.hint(format!(
            "nothing to drop; {} kept: {}",
            answer.kept, answer.keep
        ))
    } else if answer.done {
        report
    } else {
        report.hint("--yes carries it out")
    }
}

fn text(answer: &BackupsPruned) -> String {
    if answer.dropped.is_empty() && answer.packs == 0 && answer.marked == 0 {
        return String::new();
    }
    let verb = if answer.done { "dropped" } else { "would drop" };
    let mut text = format!(
        "{verb} {} and {}, {}; {} kept: {}\n",
        counted(answer.dropped.len() as u64, "backup"),
        counted(answer.packs as u64, "pack"),
        size(answer.bytes),
        answer.kept,
        answer.keep
    );
    for backup in &answer.dropped {
        text += &format!("  {}\n", described(backup));
    }
    if answer.marked > 0 {
        text += &format!(
            "{} marked: a prune a day from now deletes them, unless something needs them by then\n",
            counted(answer.marked as u64, "pack")
        );
    }
    text
}
