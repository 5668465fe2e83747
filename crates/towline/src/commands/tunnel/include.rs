//! `tow tunnel include`: the only verb that changes the user's own ssh configuration.

use super::Report;
use crate::context::Context;
use crate::output;
use crate::reach::aliases;
use crate::reach::ssh_include::{self, Done};
use crate::wiring::machines;
use towline_core::{Error, Result};

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
    let shown = format!(
        "{} {} {}",
        line.trim_end(),
        if args.remove {
            "out of"
        } else {
            "at the top of"
        },
        path.display()
    );
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
        .map_err(|error| Error::refused("the state folder cannot be used").source_error(error))?;
    if !args.remove {
        // ssh says nothing of a file that is not there, and knows no alias either.
        let _ = aliases::write(context);
    }
    let done = if args.remove {
        ssh_include::remove(&home, &ours, &note)?
    } else {
        ssh_include::add(&home, &ours, &note)?
    };
    let text = match &done {
        Done::Added => format!("written: {shown}\n"),
        Done::Removed => format!("taken: {shown}\n"),
        Done::WasThere(at) => format!("{} includes it already, in line {at}\n", path.display()),
        Done::WasNotThere => format!("{} does not include it\n", path.display()),
    };
    let is_changed = matches!(done, Done::Added | Done::Removed);
    Ok(Report::new(
        text,
        &serde_json::json!({ "file": path, "line": line.trim_end(), "changed": is_changed }),
    ))
}
