//! `tow completions`: completion scripts for shells.

use super::Report;
use crate::completion;
use crate::help;
use clap_complete::Shell;
use towline_core::Result;

/// Print the completion script for a shell.
///
/// In bash, zsh and fish it completes verbs, options and values: runs, clusters, datastores, tunnels,
/// workspaces, states and files. It asks `tow` at each Tab, so it need not be printed again for a
/// newer `tow`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow completions bash > ~/.local/share/bash-completion/completions/tow
  tow completions zsh > ~/.zfunc/_tow
  tow completions fish > ~/.config/fish/completions/tow.fish")]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "every verb has this shape")]
pub(crate) fn run(args: &Args) -> Result<Report> {
    let text = match args.shell {
        Shell::Bash => completion::BASH.to_owned(),
        Shell::Zsh => completion::ZSH.to_owned(),
        Shell::Fish => completion::FISH.to_owned(),
        // Verbs and options alone.
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut help::command(), "tow", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    };
    Ok(Report {
        text,
        ..Report::default()
    })
}
