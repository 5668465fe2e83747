//! `tow url`: an address to hand out.

use super::Report;
use crate::context::Context;
use crate::stores::{self, Stores};
use serde_json::json;
use std::time::Duration;
use towline_core::quantity::Span;
use towline_core::{Error, Result};
use towline_io::transfer::{Found, find, nothing_at};

/// Print an address at which anybody can read a file, for a while.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow url data/voc20/labels.json
  tow url research:alice/plot.png --for 2h")]
pub(crate) struct Args {
    /// A path below a folder of the configuration, or STORE:PATH.
    #[arg(value_name = "PATH")]
    path: String,
    /// The cluster, or datastore, that has it.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// How long the address is good; a datastore reached by SAS gives that SAS, whatever is asked.
    #[arg(long = "for", default_value = "7d", value_name = "TIME")]
    valid: Span,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let stores = Stores::new(context);
    let spot = stores.spot(args.cluster.as_deref(), &args.path)?;
    let ask = async {
        match find(&spot.side).await? {
            Some(Found::Object(object)) => spot.side.store.url(&object.key, Duration::from_secs(args.valid.0)).await,
            Some(Found::Folder(_)) => Err(Error::refused(format!("`{}` is a folder; only a file has an address", spot.shown))),
            None => Err(nothing_at(&spot.side).await),
        }
    };
    let Some(url) = stores::drive(ask)? else { return Ok(crate::transfers::interrupted()) };
    Ok(Report::new(format!("{url}\n"), &json!({ "path": spot.shown, "url": url })).hint("whoever has this address can read the file"))
}
