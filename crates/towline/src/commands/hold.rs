//! `tow hold`: keeps queued runs from starting.

use super::Report;
use crate::context::Context;
use crate::runs::change;
use towline_core::Result;
use towline_core::change::Change;
use towline_wire::report::change::Changed;

/// Keep queued runs from starting until `tow resume`.
///
/// They stay in the queue. A run that runs already is left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow hold 60ce2fc7
  tow hold @                  the latest; of a sweep, every run that waits
  tow resume 60ce2fc7         let it go on")]
pub(crate) struct Args {
    /// Runs or sweeps: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let runs = change::named(context, &args.runs)?;
    let changed = change::change(context, &runs, &Change::Hold)?;
    let hint = format!("let it go on: tow resume {}", args.runs.join(" "));
    Ok(Report::of(&changed, |changed| text(changed, "on hold")).hint(hint))
}

/// One line for each run.
pub(super) fn text(changed: &Changed, done: &str) -> String {
    super::lines(&changed.changed, |run| format!("{run} {done}"))
        + &super::lines(&changed.unchanged, |run| {
            // The reason may begin with the id.
            let why = run.why.strip_prefix(run.id.as_str());
            let why = why.map_or_else(|| run.why.clone(), |rest| format!("it{rest}"));
            format!("{} unchanged: {why}", run.id)
        })
}
