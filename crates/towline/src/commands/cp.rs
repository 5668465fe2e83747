//! `tow cp`: copies between any two places.

use super::Report;
use crate::context::Context;
use crate::data::stores::Stores;
use crate::data::transfers::{self, Choices, Direction, Job};
use towline_core::{Error, Result};
use towline_io::transfer::StorePath;

/// Copy between datastores, or between one and this machine.
///
/// A path in a datastore is STORE:PATH; anything else is a path on this machine. A target that ends
/// in `/` is a folder to copy into.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow cp research:alice/run1 nas:archive/run1
  tow cp checkpoints/last.pt research:alice/
  tow cp research:alice/data/labels.json /tmp/labels.json")]
pub(crate) struct Args {
    /// STORE:PATH, or a path on this machine.
    #[arg(value_name = "FROM")]
    from: String,
    /// STORE:PATH, or a path on this machine; a folder to copy into if it ends in `/`.
    #[arg(value_name = "TO")]
    to: String,
    #[command(flatten)]
    choices: Choices,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let stores = Stores::new(context);
    let here = context.folder()?;
    let named = (stores.explicit(&args.from)?, stores.explicit(&args.to)?);
    let direction = match &named {
        (Some(_), None) => Direction::Down,
        (None, Some(_)) => Direction::Up,
        _ => Direction::Across,
    };
    let from = match named.0 {
        Some(store_path) => store_path,
        None => transfers::local(&here.join(&args.from))?,
    };
    let name = args
        .from
        .trim_end_matches('/')
        .rsplit(['/', ':'])
        .next()
        .unwrap_or_default();
    let into = args.to.ends_with('/') || args.to.ends_with(':');
    let to = match named.1 {
        Some(store_path) if into && !name.is_empty() => StorePath {
            path: format!("{}{name}", store_path.prefix()),
            ..store_path
        },
        Some(store_path) => store_path,
        None => {
            let path = here.join(&args.to);
            // A folder that is there takes a file in; a folder's contents become its own.
            let holds = into || (path.is_dir() && !from.path.is_empty() && stores_a_file(&from)?);
            transfers::local_target(&if holds { path.join(name) } else { path })?
        }
    };
    if from.store.place() == to.store.place()
        && (from.path == to.path || to.path.starts_with(&from.prefix()))
    {
        return Err(Error::usage("the target is the source, or lies in it"));
    }
    transfers::run(
        context,
        vec![Job {
            shown: format!("{} to {}", args.from, args.to),
            from,
            to,
            direction,
            kept: Vec::new(),
        }],
        &args.choices,
    )
}

fn stores_a_file(store_path: &StorePath) -> Result<bool> {
    let found =
        crate::data::stores::drive(async { store_path.store.head(&store_path.key()?).await })?;
    Ok(found.flatten().is_some())
}
