//! `tow top`: runs, GPUs and logs, live in the terminal.

use super::Report;
use crate::context::Context;
use crate::output::local_time;
use crate::wiring::api;
use std::sync::Arc;
use towline_core::{Error, Result};

/// Watch runs, GPUs and logs in the terminal, and act on them.
///
/// The list of runs, the GPUs of the clusters, and the log of the selected run, all live. `?` shows
/// the keys. What changes a run is asked first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow top                    until q
  tow ps --watch             only the table, for a corner of the screen")]
pub(crate) struct Args {}

pub(crate) fn run(context: &Context, _: &Args) -> Result<Report> {
    if context.json {
        return Err(Error::usage("`tow top` is for people: it has no --json")
            .hint("for programs: tow ps --json, or tow api --stdio"));
    }
    let session = Arc::new(api::session(context)?);
    towline_top::run(&session, local_time::shown)?;
    Ok(Report::default())
}
