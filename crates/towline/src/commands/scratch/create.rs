//! `tow scratch create`: makes the folder, its environment, and a first backup of existing files.

use super::super::Report;
use super::backup;
use crate::context::Context;
use crate::scratch::{self, Known};
use towline_core::Result;
use towline_core::quantity::Span;
use towline_core::workspace::Workspace;
use towline_wire::report::scratch::WorkspaceCreated;
use towline_wire::workspace::{Act, Outcome};

/// Make a workspace: its folder, its environment, and a first backup of existing files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch create work --path /scratch/$USER/work --to /fsx/$USER/backups
  tow scratch create work --on tow-node --path /scratch/$USER/work --auto
  tow scratch create work --path /scratch/$USER/work --to research:alice/work \\
      --setup 'python3 -m venv env && env/bin/pip install torch'")]
pub(crate) struct Args {
    /// The name of the workspace.
    #[arg(default_value = "work")]
    name: String,
    /// The machine that has it: a host for ssh, or an alias such as tow-node [default: this one].
    #[arg(long, value_name = "HOST")]
    on: Option<String>,
    /// The folder on that machine; ~ and $USER are that machine's.
    #[arg(long)]
    path: String,
    /// Where backups go: a folder as that machine sees it, or DATASTORE:PATH [default: its home].
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// A command that sets up its environment, run in the folder; may be given several times.
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// A pattern of files that are not backed up, as in a .gitignore; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    ignore: Vec<String>,
    /// Back it up automatically from now on.
    #[arg(long)]
    auto: bool,
    /// How often [default: 30m].
    #[arg(long, value_name = "TIME", requires = "auto")]
    every: Option<Span>,
    /// The configuration of ssh for HOST.
    #[arg(long, value_name = "FILE", requires = "on")]
    ssh_config: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    scratch::expect_new(context, &args.name)?;
    let workspace = Workspace {
        on: args.on.clone(),
        ssh_config: args.ssh_config.clone(),
        path: args.path.clone(),
        to: args.to.clone(),
        every: args.every,
        keep: None,
        ignore: args.ignore.clone(),
        setup: args.setup.clone(),
    };
    scratch::check(&format!("workspace `{}`", args.name), &workspace)?;
    let task = scratch::task(
        context,
        &args.name,
        &workspace,
        Act::Create {
            setup: args.setup.clone(),
        },
    )?;
    let (path, has_files) = match scratch::perform(context, &task)? {
        Outcome::Created { path, has_files } => (path, has_files),
        other => return super::unexpected(&args.name, &other),
    };
    scratch::save(context, &args.name, &workspace)?;
    let known = Known {
        name: args.name.clone(),
        workspace,
        file: None,
    };
    let mut answer = WorkspaceCreated {
        workspace: args.name.clone(),
        path,
        on: args.on.clone(),
        backup: None,
        every: None,
    };
    let mut hints = Vec::new();
    if has_files {
        let first = backup::back_up(context, &known, false)?;
        hints.extend(backup::hints(&args.name, &first));
        hints.extend(backup::advice(&args.name, &first));
        answer.backup = Some(first);
    } else {
        hints.push(format!(
            "it is empty: `tow scratch backup {}` once there is something in it",
            args.name
        ));
    }
    if args.auto {
        answer.every = Some(scratch::set_auto(context, &known, args.every)?.every);
    } else {
        hints.push(format!(
            "`tow scratch auto {}` backs it up every 30 minutes",
            args.name
        ));
    }
    let report = Report::of(&answer, text);
    Ok(hints.into_iter().fold(report, Report::hint))
}

fn text(answer: &WorkspaceCreated) -> String {
    let place = super::place(answer.on.as_deref());
    let mut text = format!("workspace `{}`: {}{place}\n", answer.workspace, answer.path);
    text += &answer.backup.as_ref().map(backup::text).unwrap_or_default();
    if let Some(every) = answer.every {
        text += &format!("backed up every {every} from now on\n");
    }
    text
}
