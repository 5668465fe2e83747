//! `tow completions`: completion scripts for shells.

use super::Report;
use crate::cli::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use towline_core::Result;

/// Print the completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow completions bash > ~/.local/share/bash-completion/completions/tow
  tow completions zsh > ~/.zfunc/_tow
  tow completions fish > ~/.config/fish/completions/tow.fish")]
pub(crate) struct Args {
    shell: Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "every verb has this shape")]
pub(crate) fn run(args: &Args) -> Result<Report> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tow", &mut script);
    Ok(Report {
        text: String::from_utf8_lossy(&script).into_owned(),
        ..Report::default()
    })
}
