//! `tow up`: uploads files and folders to their datastore, under the same path.

use super::Report;
use crate::context::Context;
use crate::data::stores::Stores;
use crate::data::transfers::{self, Choices, Direction, Job};
use towline_core::Result;

/// Upload files or folders; equal files are not sent again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow up data/voc20                  to the datastore of the folder `data`
  tow up data/voc20 --dry-run        what would be sent
  tow up -c eu data/voc20            to the datastore that cluster `eu` uses
  tow up -c eu -f we3v32 data/voc20  from one cluster's datastore to the other's")]
pub(crate) struct Args {
    /// Paths below a folder of the configuration, or STORE:PATH.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// The cluster or datastore to upload to.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Copy from this cluster's datastore instead of from here.
    #[arg(short, long, value_name = "CLUSTER", alias = "from_cluster")]
    from_cluster: Option<String>,
    #[command(flatten)]
    choices: Choices,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let stores = Stores::new(context);
    let job = |path: &String| {
        let location = stores.location(args.cluster.as_deref(), path)?;
        let from = match &args.from_cluster {
            Some(cluster) => stores.location(Some(cluster), path)?.store_path,
            None => transfers::local(&location.local)?,
        };
        let direction = if args.from_cluster.is_some() {
            Direction::Across
        } else {
            Direction::Up
        };
        Ok(Job {
            shown: location.shown,
            from,
            to: location.store_path,
            direction,
            kept: Vec::new(),
        })
    };
    // All are found before any is sent.
    let jobs = args.paths.iter().map(job).collect::<Result<Vec<_>>>()?;
    transfers::run(context, jobs, &args.choices)
}
