//! `tow api`: the interface for programs.

use super::Report;
use crate::context::Context;
use crate::wiring::api;
use std::io;
use std::sync::Arc;
use towline_core::{Error, Result};

/// Answer calls of a program: JSON lines on stdin and stdout.
///
/// For editors and other programs. Each line of the input is a call, `{"id": 1, "call": "ps",
/// "args": {}}`; each line of the output is a reply to one. It ends when its input does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow api --stdio                                                  for an editor
  tow api --openapi > openapi.json                                 what can be called
  echo '{\"id\": 1, \"call\": \"runs.page\", \"args\": {\"limit\": 5}}' | tow api --stdio")]
pub(crate) struct Args {
    /// Use standard input and output.
    #[arg(long)]
    stdio: bool,
    /// Print the description of the interface, as OpenAPI.
    #[arg(long, conflicts_with = "stdio")]
    openapi: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    if args.openapi {
        let document = api::description::openapi();
        let text = serde_json::to_string_pretty(&document)
            .map_err(|error| Error::bug("the description cannot be printed").source_error(error))?;
        return Ok(Report {
            text: text + "\n",
            json: Some(document),
            ..Report::default()
        });
    }
    if !args.stdio {
        return Err(Error::usage("`tow api` needs `--stdio` or `--openapi`")
            .hint("for a page in a browser: tow ui"));
    }
    let session = Arc::new(api::session(context)?);
    towline_api::stdio::serve(&session, io::stdin().lock(), io::stdout())?;
    Ok(Report::default())
}
