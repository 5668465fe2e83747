//! `tow scratch check`: reads every byte of the backups again.

use super::super::Report;
use super::{counted, few, moved, size};
use crate::context::Context;
use crate::scratch;
use towline_core::{ErrorKind, Result};
use towline_wire::report::scratch::{BackupsChecked, TouchedBackup};
use towline_wire::workspace::{Act, Outcome};

/// Read every byte of a workspace's backups again and say which files any damage affects.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch check
  tow scratch check work --backup 3f2a
  tow scratch check work --repair")]
pub(crate) struct Args {
    /// The workspace [default: the only one].
    name: Option<String>,
    /// Only this backup.
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    /// Stop using damaged content: the next backup stores it again from the workspace.
    #[arg(long)]
    repair: bool,
    /// A machine that can read the backups.
    #[arg(long, value_name = "HOST")]
    on: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let known = moved(
        scratch::choose(context, args.name.as_deref())?,
        args.on.as_deref(),
    );
    let task = scratch::task(
        context,
        &known.name,
        &known.workspace,
        Act::Check {
            backup: args.backup.clone(),
            repair: args.repair,
        },
    )?;
    match scratch::perform_from_here(context, task)? {
        Outcome::Checked(checked) => {
            let answer = BackupsChecked::from(&checked);
            Ok(report(&known.name, &answer, args.repair))
        }
        other => super::unexpected(&known.name, &other),
    }
}

fn report(name: &str, answer: &BackupsChecked, repaired: bool) -> Report {
    let report = Report::of(answer, text);
    match (answer.ok, repaired) {
        (true, _) if answer.damage.is_empty() => report.hint("all is as it was stored"),
        (true, _) => report.hint(
            "nothing new is damaged; what is set aside goes with the backups \
            that need it: `tow scratch prune`",
        ),
        (false, false) => report
            .code(ErrorKind::Refused.exit_code())
            .hint("--repair makes the next backup store the damaged content again"),
        (false, true) => report.hint(format!(
            "`tow scratch backup {name}` now stores the damaged content again"
        )),
    }
}

fn text(answer: &BackupsChecked) -> String {
    let mut text = format!(
        "{}, {}, {} read\n",
        counted(answer.backups as u64, "backup"),
        counted(answer.packs as u64, "pack"),
        size(answer.bytes)
    );
    for damage in &answer.damage {
        let known = if damage.set_aside {
            "set aside before, the newest backup does not need it"
        } else {
            "damaged"
        };
        text += &format!("{known}: {}: {}\n", damage.what, damage.how);
        for TouchedBackup { backup, files } in &damage.touches {
            let files = if files.is_empty() {
                "all of it".to_owned()
            } else {
                few(files)
            };
            text += &format!("  touches backup {backup}: {files}\n");
        }
    }
    text
}
