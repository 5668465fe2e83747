//! `tow snapshot`: the stored code of runs.

mod check;
mod get;
mod ls;
mod prune;

use super::Report;
use crate::context::Context;
use crate::data::stores::{Stores, remote_store};
use std::fs::File;
use towline_core::{Error, Result};
use towline_engine::flow::code;
use towline_host::lock;
use towline_snapshot::digest::Digest;
use towline_snapshot::store::{Blob, BlobKind, BlobStore, FolderStore};

/// List, check, write out or drop the snapshots of runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow snapshot ls
  tow snapshot check
  tow snapshot prune")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    #[command(visible_alias = "list")]
    Ls(ls::Args),
    Check(check::Args),
    Get(get::Args),
    Prune(prune::Args),
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    match &args.verb {
        Verb::Ls(args) => ls::run(context, args),
        Verb::Check(args) => check::run(context, args),
        Verb::Get(args) => get::run(context, args),
        Verb::Prune(args) => prune::run(context, args),
    }
}

/// Runs `work` on the datastore of that name, or on this machine's own store.
fn with_store<T>(
    context: &Context,
    name: Option<&str>,
    work: impl FnOnce(&dyn BlobStore) -> Result<T>,
) -> Result<T> {
    match name {
        None => work(&code::local_store(context.state()?)?.store),
        Some(name) => work(&remote_store(&Stores::new(context), name)?),
    }
}

/// This machine's store, locked exclusively: waits for processes that take or name a snapshot.
struct Alone {
    store: FolderStore,
    _lock: File,
}

fn alone(context: &Context) -> Result<Alone> {
    let state = context.state()?;
    let lock = code::open_lock(state)?;
    lock::lock_alone(&lock)
        .map_err(|error| Error::from_io("the snapshots cannot be locked", error))?;
    Ok(Alone {
        store: FolderStore::new(state.snapshots()),
        _lock: lock,
    })
}

/// The one snapshot whose id begins with the text.
fn find(store: &dyn BlobStore, text: &str) -> Result<Digest> {
    if let Some(id) = Digest::parse(text) {
        return Ok(id);
    }
    let wrong = || {
        Error::not_found(format!("there is no snapshot `{text}`"))
            .hint("`tow snapshot ls` lists them")
    };
    if text.len() < 4 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let ids = store
        .list(BlobKind::Root)?
        .into_iter()
        .filter_map(|stored| {
            if let Blob::Root(id) = stored.blob {
                Some(id)
            } else {
                None
            }
        });
    let found: Vec<Digest> = ids.filter(|id| id.to_string().starts_with(text)).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(wrong()),
        several => Err(Error::new(
            towline_core::ErrorKind::Ambiguous,
            format!("`{text}` fits {} snapshots", several.len()),
        )
        .hint(
            several
                .iter()
                .map(Digest::short)
                .collect::<Vec<_>>()
                .join(", "),
        )),
    }
}
