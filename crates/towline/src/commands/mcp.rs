//! `tow mcp`: the interface for agents.

use super::Report;
use crate::context::Context;
use crate::wiring::{agent, api, threads};
use std::io::{IsTerminal, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use towline_api::session::Session;
use towline_core::agents::{Allowance, GpuTime};
use towline_core::{Error, Result};
use towline_mcp::User;

/// Let an agent work with runs, by the Model Context Protocol (MCP).
///
/// For assistants in editors and terminals, on stdin and stdout. An agent may do nothing until your own configuration
/// names clusters and GPU-hours for agents, and then only what they allow. It ends when its input
/// does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow mcp --folder ~/vision                      what an agent starts
  claude mcp add towline -- tow mcp              for one that is told so
  {\"mcpServers\": {\"towline\": {\"command\": \"tow\", \"args\": [\"mcp\"]}}}

In ~/.config/towline/config.yaml:
  agents: {clusters: [lab], gpu_hours: 24}       what agents may take in 30 days")]
pub(crate) struct Args {
    /// The folder whose code is submitted [default: the current one].
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(_: &Context, args: &Args) -> Result<Report> {
    if stdin().is_terminal() {
        return Err(Error::usage("`tow mcp` speaks with a program, and this is a terminal").hint(
            "add it to your agent: claude mcp add towline -- tow mcp; for people: tow top, or tow ui",
        ));
    }
    if let Some(folder) = &args.folder {
        std::env::set_current_dir(folder)
            .map_err(|error| Error::from_io(folder.display().to_string(), error))?;
    }
    let runtime = threads::serving_runtime()?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let outcome = runtime.block_on(towline_mcp::serve(Arc::new(Owner), input, output));
    // A thread may still wait for input that nobody will write.
    runtime.shutdown_background();
    outcome.map(|()| Report::default())
}

/// The user who runs this program. Each question reads the configuration anew, so that what the
/// user takes back is gone at once.
struct Owner;

impl User for Owner {
    fn allowance(&self) -> Result<(Allowance, GpuTime)> {
        agent::allowance(&Context::new(true, true))
    }

    fn session(&self, agent: &str) -> Result<Session> {
        api::session_of(&Context::new(true, true), Some(agent))
    }
}
