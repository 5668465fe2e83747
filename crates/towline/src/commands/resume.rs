//! `tow resume`: lets runs start that were put on hold.

use super::{Report, hold};
use crate::context::Context;
use crate::runs::change;
use towline_core::Result;
use towline_core::change::Change;

/// Let runs start that `tow hold` keeps from starting.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow resume 60ce2fc7
  tow resume @                the latest; of a sweep, every run")]
pub(crate) struct Args {
    /// Runs or sweeps: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let runs = change::named(context, &args.runs)?;
    let changed = change::change(context, &runs, &Change::Resume)?;
    let hint = format!("why it waits: tow why {}", args.runs.join(" "));
    Ok(Report::of(&changed, |changed| hold::text(changed, "may start")).hint(hint))
}
