//! `tow tunnel include`: the only verb that changes the user's own ssh configuration.

use super::Report;
use crate::context::Context;
use crate::output;
use crate::reach::aliases;
use crate::reach::ssh_include::{self, Done};
use crate::wiring::machines;
use std::path::Path;
use towline_core::{Error, Result};
use towline_wire::report::tunnel::SshInclude;

/// Make the aliases known to ssh and editors: one `Include` line at the top of ~/.ssh/config.
///
/// Nothing else in that file changes, and no other verb touches it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel include
  tow tunnel include --remove")]
pub(crate) struct Args {
    /// Remove the line.
    #[arg(long)]
    remove: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let home = machines::home()?;
    let ours = aliases::file(context)?;
    let (path, line) = (ssh_include::config(&home), ssh_include::line(&ours)?);
    let shown = shown(line.trim_end(), &path, args.remove);
    if !args.yes {
        if !output::can_ask() {
            return Err(Error::refused(format!("this changes {}", path.display()))
                .hint("--yes carries it out"));
        }
        if !output::ask(&format!(
            "{} {shown}?",
            if args.remove { "take" } else { "write" }
        )) {
            return Err(Error::refused("nothing was changed"));
        }
    }
    let note = context.state()?.ssh().join("made_config");
    towline_host::filesystem::private_folder(&context.state()?.ssh())
        .map_err(|error| Error::from_io("the state folder cannot be used", error))?;
    if !args.remove {
        // ssh says nothing of a file that is not there, and knows no alias either.
        let _ = aliases::write(context);
    }
    let done = if args.remove {
        ssh_include::remove(&home, &ours, &note)?
    } else {
        ssh_include::add(&home, &ours, &note)?
    };
    let answer = SshInclude {
        file: path,
        line: line.trim_end().to_owned(),
        changed: matches!(done, Done::Added | Done::Removed),
        found_in_line: match done {
            Done::WasThere(at) => Some(at),
            Done::Added | Done::Removed | Done::WasNotThere => None,
        },
    };
    Ok(Report::of(&answer, |answer| text(answer, args.remove)))
}

fn text(answer: &SshInclude, is_removal: bool) -> String {
    let (file, line) = (answer.file.display(), &answer.line);
    match answer.found_in_line {
        Some(at) => format!("{file} includes it already, in line {at}\n"),
        None if !answer.changed => format!("{file} does not include it\n"),
        None if is_removal => format!("taken: {}\n", shown(line, &answer.file, true)),
        None => format!("written: {}\n", shown(line, &answer.file, false)),
    }
}

/// The line, and where it comes to be or goes from.
fn shown(line: &str, file: &Path, is_removal: bool) -> String {
    let place = if is_removal {
        "out of"
    } else {
        "at the top of"
    };
    format!("{line} {place} {}", file.display())
}
