//! `tow daemon`: the process that holds the local queue.

use super::Report;
use crate::context::Context;
use std::path::PathBuf;
use towline_client as client;
use towline_client::stop::{Stopped, stop};
use towline_core::Result;
use towline_core::quantity::Memory;
use towline_core::time::human_millis;
use towline_wire::layout::StateFolder;
use towline_wire::report::daemon::{DaemonStatus, DaemonStopped};

/// Show or stop the daemon; it starts by itself.
///
/// It exits when idle. Runs do not need it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow daemon status
  tow daemon stop          runs go on; the next tow that needs it starts another")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show whether it runs, and what it is doing.
    Status,
    /// Make it exit, even if it hangs; runs go on.
    Stop,
    /// Run the daemon in this process.
    #[command(hide = true)]
    Run {
        #[arg(long)]
        state: Option<PathBuf>,
    },
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    match &args.what {
        What::Run { state } => {
            let state = match state {
                Some(folder) => StateFolder::new(folder),
                None => context.state()?.clone(),
            };
            let means = crate::wiring::means::OwnMeans::new(&state);
            let opener: towline_server::Opener =
                std::sync::Arc::new(move |named| towline_backends::registry::open(named, &means));
            towline_server::daemon_main(&state, opener)?;
            Ok(Report::default())
        }
        What::Stop => {
            let stopped = stop(context.state()?)?;
            let answer = DaemonStopped {
                stopped: !matches!(stopped, Stopped::NotThere),
                ended: match stopped {
                    Stopped::Ended(pid) => Some(pid),
                    Stopped::Left | Stopped::NotThere => None,
                },
            };
            Ok(Report::of(&answer, stopped_text))
        }
        What::Status => {
            let status = client::status(context.state()?)?;
            let answer = DaemonStatus {
                running: status.is_some(),
                status,
            };
            Ok(Report::of(&answer, status_text))
        }
    }
}

fn stopped_text(answer: &DaemonStopped) -> String {
    match answer.ended {
        Some(pid) => format!("process {pid} did not answer and was ended; runs go on\n"),
        None if answer.stopped => "stopped; runs go on\n".to_owned(),
        None => "no daemon is running\n".to_owned(),
    }
}

fn status_text(answer: &DaemonStatus) -> String {
    let Some(status) = &answer.status else {
        return "no daemon is running; it starts when needed\n".to_owned();
    };
    let age = human_millis(towline_host::clock::now().since(status.started));
    format!(
        "running: version {}, process {}, for {age}\n{} queued, {} running, {} runner(s), {} \
            memory\n",
        status.version,
        status.pid,
        status.queued,
        status.running,
        status.runners,
        Memory(status.memory_bytes)
    )
}
