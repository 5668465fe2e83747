//! `tow down`: downloads files and folders from their datastore, under the same path.

use super::Report;
use crate::context::Context;
use crate::data::stores::Stores;
use crate::data::transfers::{self, Choices, Direction, Job};
use towline_core::Result;

/// Download files or folders; equal files are not fetched again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow down data/voc20              from the datastore of the folder `data`
  tow down data/voc20 --dry-run    what would be fetched
  tow down -c eu data/voc20/a.txt  from the datastore that cluster `eu` uses")]
pub(crate) struct Args {
    /// Paths below a folder of the configuration, or STORE:PATH.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// The cluster or datastore to download from.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    #[command(flatten)]
    choices: Choices,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let stores = Stores::new(context);
    let job = |path: &String| {
        let location = stores.location(args.cluster.as_deref(), path)?;
        Ok(Job {
            to: transfers::local_target(&location.local)?,
            shown: location.shown,
            from: location.store_path,
            direction: Direction::Down,
            kept: Vec::new(),
        })
    };
    let jobs = args.paths.iter().map(job).collect::<Result<Vec<_>>>()?;
    transfers::run(context, jobs, &args.choices)
}
