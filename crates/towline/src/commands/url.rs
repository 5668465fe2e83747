//! `tow url`: prints a URL to share.

use super::Report;
use crate::context::Context;
use crate::data::stores::{self, Location, Stores};
use std::time::Duration;
use towline_core::quantity::Span;
use towline_core::{Error, Result};
use towline_io::data::Key;
use towline_io::transfer::{Found, find, nothing_at};
use towline_wire::report::url::FileUrl;

/// Print a URL at which anybody can read a file, for a while.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow url data/voc20/labels.json
  tow url research:alice/plot.png --for 2h
  tow url research:alice/plot.png --with-sas   of a datastore that has a SAS and no key")]
pub(crate) struct Args {
    /// A path below a folder of the configuration, or STORE:PATH.
    #[arg(value_name = "PATH")]
    path: String,
    /// The cluster or datastore that has it.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// How long the URL works [default: 7d].
    #[arg(long = "for", value_name = "TIME")]
    valid: Option<Span>,
    /// Put the datastore's own SAS into the URL; the output says what else it allows.
    #[arg(long, conflicts_with = "valid")]
    with_sas: bool,
}

const WEEK: Span = Span(7 * 86_400);

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let stores = Stores::new(context);
    let location = stores.location(args.cluster.as_deref(), &args.path)?;
    let ask = async {
        match find(&location.store_path).await? {
            Some(Found::Object(object)) if args.with_sas => with_credential(&location, &object.key),
            Some(Found::Object(object)) => {
                let valid = Duration::from_secs(args.valid.unwrap_or(WEEK).0);
                let refused = |error: Error| match location
                    .store_path
                    .store
                    .url_with_credential(&object.key)
                {
                    Some((_, allows)) => error.hint(format!(
                        "or hand out the SAS itself with `--with-sas`: whoever has it can {allows}"
                    )),
                    None => error,
                };
                let url = location
                    .store_path
                    .store
                    .url(&object.key, valid)
                    .await
                    .map_err(refused)?;
                Ok((url, "whoever has this address can read the file".to_owned()))
            }
            Some(Found::Folder(_)) => Err(Error::unsupported(format!(
                "`{}` is a folder; only a file has an address",
                location.shown
            ))),
            None => Err(nothing_at(&location.store_path).await),
        }
    };
    let Some((url, allows)) = stores::drive(ask)? else {
        return Ok(crate::data::transfers::interrupted());
    };
    let answer = FileUrl {
        path: location.shown,
        url,
    };
    Ok(Report::of(&answer, |answer| format!("{}\n", answer.url)).hint(allows))
}

/// The URL with the store's SAS in it, and what the SAS allows.
fn with_credential(location: &Location, key: &Key) -> Result<(String, String)> {
    let Some((url, allows)) = location.store_path.store.url_with_credential(key) else {
        return Err(Error::unsupported(format!(
            "{} is not reached by a SAS",
            location.store_path.store.place()
        ))
        .hint("leave `--with-sas` out: an address for this file alone is signed"));
    };
    Ok((
        url,
        format!("warning: whoever has this address can {allows}"),
    ))
}
