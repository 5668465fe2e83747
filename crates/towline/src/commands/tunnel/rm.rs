//! `tow tunnel rm`: removes definitions.

use super::Report;
use crate::commands::lines;
use crate::context::Context;
use crate::reach::tunnels;
use towline_core::{Error, Result};
use towline_wire::report::tunnel::TunnelsRemoved;

/// Remove a definition. Close an open tunnel first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel rm box")]
pub(crate) struct Args {
    /// Tunnels, as `tow tunnel ls` lists them.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let state = context.state()?;
    let mut files = Vec::new();
    // All or none.
    for name in &args.names {
        let named = tunnels::find(context, name)?;
        let Some(file) = named.file else {
            return Err(Error::refused(format!(
                "tunnel `{name}` is defined in {}, which tow does not change",
                named.origin
            ))
            .hint("remove it there"));
        };
        if state.tunnel(name).join("wanted").exists() || tunnels::is_supervised(state, name) {
            return Err(Error::conflict(format!("tunnel `{name}` is open"))
                .hint(format!("first: tow tunnel close {name}")));
        }
        files.push((name, file));
    }
    for (name, file) in files {
        std::fs::remove_file(&file).map_err(|error| {
            Error::from_io(format!("{} cannot be removed", file.display()), error)
        })?;
        let _ = towline_host::filesystem::remove_tree(&state.tunnel(name));
    }
    let answer = TunnelsRemoved {
        removed: args.names.clone(),
    };
    Ok(Report::of(&answer, |answer| {
        lines(&answer.removed, |name| format!("removed {name}"))
    }))
}
