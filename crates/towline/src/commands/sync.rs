//! `tow sync`: mirrors the code to a path of a datastore.

use super::Report;
use crate::context::Context;
use crate::data::stores::Stores;
use crate::data::transfers::{self, Choices, Job};
use crate::output;
use std::sync::Arc;
use towline_core::job::Job as JobFile;
use towline_core::{Error, Result};
use towline_engine::flow;
use towline_engine::flow::code::{self, Wish};
use towline_io::data::Key;
use towline_io::folder::Folder;
use towline_io::listed::Listed;
use towline_io::transfer::StorePath;
use towline_snapshot::walk::FoundKind;

/// Mirror the code to a path of a datastore, file by file.
///
/// Equal files are not uploaded again. The ignore rules are those of a snapshot. Without a place,
/// `sync:` of the configuration names it: `sync: {datastore: research, path: alice/code, ignore:
/// [notes]}`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow sync                       to where `sync:` says
  tow sync research:alice/code
  tow sync --dry-run --delete    what would be sent, and what would go there")]
pub(crate) struct Args {
    /// The target.
    #[arg(value_name = "DATASTORE:PATH")]
    place: Option<String>,
    /// A pattern to leave out, as in `.gitignore`; may be repeated.
    #[arg(long = "ignore", value_name = "PATTERN")]
    ignore: Vec<String>,
    #[command(flatten)]
    choices: Choices,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let config = &context.layers()?.config;
    let (place, mut ignore) = match (&args.place, &config.sync) {
        (Some(place), sync) => (
            place.clone(),
            sync.as_ref()
                .map(|sync| sync.ignore.clone())
                .unwrap_or_default(),
        ),
        (None, Some(sync)) => (
            format!("{}:{}", sync.datastore, sync.path),
            sync.ignore.clone(),
        ),
        (None, None) => {
            return Err(Error::usage("there is no place to mirror to").hint(
                "tow sync DATASTORE:PATH, or write `sync: {datastore: …, path: …}` in towline.yaml",
            ));
        }
    };
    ignore.extend(args.ignore.iter().cloned());
    let stores = Stores::new(context);
    let target = stores
        .explicit(&place)?
        .ok_or_else(|| Error::usage(format!("`{place}` is not DATASTORE:PATH")))?;
    if target.path.is_empty() {
        return Err(
            Error::refused("the code needs a path of its own in the datastore")
                .hint(format!("for example {place}code")),
        );
    }
    let code = flow::code_place(&JobFile::default(), context.folder()?)?;
    if let Some(why) = code::stays(&code) {
        return Err(Error::refused(why).hint("begin in a project's folder"));
    }
    let survey = code::survey(
        context.layers()?,
        context.state()?,
        &code,
        &Wish {
            ignore: &ignore,
            large: false,
        },
    )?;
    let (mut keys, mut kept) = (Vec::new(), Vec::new());
    for found in &survey.walked.found {
        let name = String::from_utf8_lossy(&found.path);
        match found.kind {
            FoundKind::Folder => {}
            FoundKind::Link => {
                output::status(&format!("left out {name}: a store holds no links"));
                kept.push(name.into_owned());
            }
            FoundKind::File => {
                let text = std::str::from_utf8(&found.path).map_err(|_| {
                    Error::unsupported(format!("the name of {name} is not UTF-8"))
                        .hint("rename it or leave it out with --ignore")
                })?;
                keys.push(Key::new(text).map_err(|why| {
                    Error::unsupported(why).hint("rename it or leave it out with --ignore")
                })?);
            }
        }
    }
    let from = StorePath {
        store: Arc::new(Listed::new(Arc::new(Folder::local(&survey.root)), keys)),
        path: String::new(),
    };
    transfers::run(
        context,
        vec![Job {
            shown: place,
            from,
            to: target,
            direction: transfers::Direction::Up,
            kept,
        }],
        &args.choices,
    )
}
