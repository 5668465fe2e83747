//! `tow abort`: ends runs.

use super::Report;
use crate::context::Context;
use crate::runs::change::ask_daemon;
use crate::runs::follow::wait_for_end;
use crate::wiring::agent;
use std::collections::HashSet;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Reply, Request};
use towline_wire::report::abort::Aborted;

/// End runs: SIGTERM, ten seconds of grace, SIGKILL.
///
/// Queued runs leave the queue.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow abort 60ce2fc7
  tow abort @                 the latest; of a sweep, every run
  tow abort 60ce 91ab --wait  and wait until they are gone")]
pub(crate) struct Args {
    /// Runs or sweeps: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Wait until they have ended.
    #[arg(short, long)]
    wait: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let mut runs: Vec<RunId> = Vec::new();
    let mut seen = HashSet::new();
    // All are found before any is touched.
    for text in &args.runs {
        for run in history.find_to_change(text)?.runs() {
            if seen.insert(run.id.clone()) {
                runs.push(run.id.clone());
            }
        }
    }
    agent::check_own(&history, &runs)?;
    let cancelled = cancel(context, &runs)?;
    if args.wait && !cancelled.cancelling.is_empty() {
        wait_for_end(context, &cancelled.cancelling)?;
    }
    Ok(Report::of(&cancelled, |answer| text(answer, args.wait)))
}

fn text(aborted: &Aborted, have_ended: bool) -> String {
    let verb = if have_ended { "aborted" } else { "aborting" };
    super::lines(&aborted.cancelling, |run| format!("{verb} {run}"))
        + &super::lines(&aborted.already_ended, |run| {
            format!("{run} had ended already")
        })
}

fn cancel(context: &Context, runs: &[RunId]) -> Result<Aborted> {
    let request = || Request::Cancel {
        runs: runs.to_vec(),
        by: agent::name(),
    };
    match ask_daemon(context, &request, unwritten)? {
        Reply::Cancelling {
            runs,
            already_ended,
        } => Ok(Aborted {
            cancelling: runs,
            already_ended,
        }),
        _ => Err(Error::bug("the daemon's answer does not match the request")),
    }
}

/// The error if the daemon ends the runs but cannot record that.
fn unwritten(trouble: &str) -> Error {
    Error::unreachable(format!(
        "the runs are being stopped, but the daemon cannot record your abort: {trouble}"
    ))
    .hint("make room, then abort it again: `tow ps` shows whether it has ended")
}

/// Ends runs and waits until none of their processes is alive.
pub(crate) fn cancel_and_wait(context: &Context, runs: &[RunId]) -> Result<()> {
    let cancelled = cancel(context, runs)?;
    if !cancelled.cancelling.is_empty() {
        wait_for_end(context, &cancelled.cancelling)?;
    }
    Ok(())
}
