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

/// Show or stop the daemon. It starts by itself and exits when idle; runs do not need it.
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
        What::Stop => Ok(match stop(context.state()?)? {
            Stopped::Left => Report::new(
                "stopped; runs go on\n",
                &serde_json::json!({ "stopped": true }),
            ),
            Stopped::Ended(pid) => {
                let text = format!("process {pid} did not answer and was ended; runs go on\n");
                Report::new(text, &serde_json::json!({ "stopped": true, "ended": pid }))
            }
            Stopped::NotThere => Report::new(
                "no daemon is running\n",
                &serde_json::json!({ "stopped": false }),
            ),
        }),
        What::Status => match client::status(context.state()?)? {
            Some(status) => {
                let age = human_millis(towline_host::clock::now().since(status.started));
                let text = format!(
                    "running: version {}, process {}, for {age}\n{} queued, {} running, {} \
                        runner(s), {} memory\n",
                    status.version,
                    status.pid,
                    status.queued,
                    status.running,
                    status.runners,
                    Memory(status.memory_bytes)
                );
                Ok(Report::new(
                    text,
                    &serde_json::json!({ "running": true, "status": status }),
                ))
            }
            None => Ok(Report::new(
                "no daemon is running; it starts when needed\n",
                &serde_json::json!({ "running": false }),
            )),
        },
    }
}
