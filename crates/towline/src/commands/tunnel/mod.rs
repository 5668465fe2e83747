//! `tow tunnel`: ports of this machine that lead to hosts behind a login host or a bastion.

mod add;
mod close;
mod include;
mod ls;
mod open;
mod rm;

use super::Report;
use crate::context::Context;
use crate::reach::aliases;
use crate::reach::ssh_include;
use crate::reach::tunnels;
use towline_core::Result;
use towline_core::tunnel::Definition;

/// Keep ports open that lead to hosts behind a bastion.
///
/// A tunnel is defined once and opened by name. It holds its port and reconnects after a loss of
/// the network, a sleep or a restart of a host on the route, until you close it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel add box --to gcrazgdl1234 --via bastion --open
  tow tunnel open box          then: ssh tow-box
  tow tunnel ls
  tow tunnel close box")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Add(Box<add::Args>),
    Open(open::Args),
    Close(close::Args),
    #[command(visible_alias = "list")]
    Ls(ls::Args),
    Rm(rm::Args),
    Include(include::Args),
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    match &args.verb {
        Verb::Add(args) => add::run(context, args),
        Verb::Open(args) => open::run(context, args),
        Verb::Close(args) => close::run(context, args),
        Verb::Ls(args) => ls::run(context, args),
        Verb::Rm(args) => rm::run(context, args),
        Verb::Include(args) => include::run(context, args),
    }
}

/// Whether the user's ssh reads our aliases.
fn is_included(context: &Context) -> bool {
    let look = || -> Result<bool> {
        let home = crate::wiring::machines::home()?;
        let text = std::fs::read(ssh_include::config(&home)).unwrap_or_default();
        Ok(ssh_include::find(&text, &home, &aliases::file(context)?).is_some())
    };
    look().unwrap_or(false)
}

/// The ssh alias of the target behind the tunnel.
fn alias(name: &str, definition: &Definition) -> Option<String> {
    definition.is_for_ssh().then(|| format!("tow-{name}"))
}

/// What the user can do with an open tunnel.
fn next_steps(
    context: &Context,
    report: Report,
    name: &str,
    definition: &Definition,
) -> Result<Report> {
    let Some(alias) = alias(name, definition) else {
        return Ok(report.hint(format!(
            "127.0.0.1:{} leads to {}",
            definition.port, definition.to
        )));
    };
    if is_included(context) {
        return Ok(report.hint(format!("ssh {alias}")));
    }
    let file = aliases::file(context)?;
    let report = report.hint(format!(
        "ssh -F {} {alias}",
        towline_core::quote::word(&file.display().to_string())
    ));
    Ok(report.hint(format!(
        "for `ssh {alias}`, and for editors: tow tunnel include"
    )))
}

/// The chosen tunnels: those named, or all in `known`.
fn chosen(names: &[String], is_all: bool, known: Vec<String>) -> Result<Vec<String>> {
    if is_all {
        return Ok(known);
    }
    for name in names {
        if !known.contains(name) {
            return Err(tunnels::unknown(name, known.iter()));
        }
    }
    Ok(names.to_vec())
}
