//! `tow scratch create`: makes the folder, its environment, and a first backup of existing files.

use super::super::Report;
use super::backup;
use crate::context::Context;
use crate::scratch::{self, Known};
use towline_core::Result;
use towline_core::quantity::Span;
use towline_core::workspace::Workspace;
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
    let place = args
        .on
        .as_deref()
        .map_or_else(String::new, |on| format!(" on {on}"));
    let mut text = format!("workspace `{}`: {path}{place}\n", args.name);
    let mut json = serde_json::json!({ "workspace": args.name, "path": path, "on": args.on });
    let mut report_hints = Vec::new();
    if has_files {
        let first = backup::back_up(context, &known, false)?;
        text += &first.text;
        json["backup"] = first.json;
        report_hints.extend(first.hints.into_iter().chain(first.advice));
    } else {
        report_hints.push(format!(
            "it is empty: `tow scratch backup {}` once there is something in it",
            args.name
        ));
    }
    if args.auto {
        let auto = scratch::set_auto(context, &known, args.every)?;
        text += &format!("backed up every {} from now on\n", auto.every);
    } else {
        report_hints.push(format!(
            "`tow scratch auto {}` backs it up every 30 minutes",
            args.name
        ));
    }
    Ok(report_hints
        .into_iter()
        .fold(Report::new(text, &json), Report::hint))
}
