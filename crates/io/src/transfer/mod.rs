//! Copying trees from one store to another; either may be a folder of this machine.
//!
//! Equal objects are skipped and different ones replaced. Only [`remove`] deletes. A copy that was
//! interrupted continues where it stopped when it is started again.

mod blocks;
pub mod compare;
pub mod engine;
pub mod hash;
mod join;
mod journal;
pub(crate) mod md5_lanes;
mod object;
pub mod pace;
pub mod progress;
pub mod remove;

use crate::data::{Data, Key, Object, Page, UnsupportedEntry};
use std::path::PathBuf;
use std::sync::Arc;
use towline_core::{Error, Result};

/// Bytes of a block where the store does not ask for other sizes. An object of at most this size
/// goes in one call.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// One side of a copy: a store and a path in it, without `/` at the end; empty is its root.
#[derive(Debug, Clone)]
pub struct StorePath {
    pub store: Arc<dyn Data>,
    pub path: String,
}

impl Outcome {
    /// Removes from `extra` everything at or below a name that the source has but that could not be
    /// copied: the target is not the only one that has it.
    pub fn spare(&mut self, from: &StorePath, to: &StorePath, more: &[String]) {
        let (from, to) = (from.prefix(), to.prefix());
        let names = self
            .left_out
            .iter()
            .map(|entry| entry.name.as_str())
            .chain(self.failed.iter().map(|(name, _)| name.as_str()));
        let kept: Vec<String> = names
            .map(|name| name.strip_prefix(&from).unwrap_or(name))
            .chain(more.iter().map(String::as_str))
            .map(|name| name.trim_matches('/').to_owned())
            .collect();
        let before = self.extra.len();
        self.extra.retain(|(key, _)| {
            let name = key.as_str().strip_prefix(&to).unwrap_or(key.as_str());
            !kept.iter().any(|kept| {
                name == kept
                    || name
                        .strip_prefix(kept.as_str())
                        .is_some_and(|rest| rest.starts_with('/'))
            })
        });
        self.spared = (before - self.extra.len()) as u64;
    }
}

impl StorePath {
    /// The prefix of all keys below the path.
    pub fn prefix(&self) -> String {
        if self.path.is_empty() {
            String::new()
        } else {
            format!("{}/", self.path)
        }
    }
    /// The key of the path itself.
    pub fn key(&self) -> Result<Key> {
        Key::new(self.path.clone()).map_err(|why| {
            Error::usage(format!(
                "`{}` cannot name an object: {why}",
                crate::data::shown(&self.path)
            ))
        })
    }
}

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Compare contents, whatever the times say.
    pub checksum: bool,
    /// Also list what only the receiving side has.
    pub extras: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// The folder of journals; without it some transfers cannot be resumed.
    pub journals: Option<PathBuf>,
}

/// The result of a copy, or of a dry run.
#[derive(Debug, Default)]
pub struct Outcome {
    pub sent: u64,
    pub sent_bytes: u64,
    /// Bytes of these that an earlier, interrupted copy had already brought over.
    pub resumed_bytes: u64,
    /// Sent objects that were copied inside the service.
    pub inside: u64,
    /// Objects without a hash: only their length was checked.
    pub by_length: u64,
    pub equal_by_time: u64,
    pub equal_by_hash: u64,
    /// With `dry_run`: what would be sent.
    pub planned: Vec<(String, u64)>,
    /// With `extras`: what only the receiving side has.
    pub extra: Vec<(Key, u64)>,
    pub left_out: Vec<UnsupportedEntry>,
    /// Extra objects that are not listed, because the source has something there that was left out.
    pub spared: u64,
    pub failed: Vec<(String, Error)>,
}

/// The result of [`find`]: an object, or a folder.
#[derive(Debug, Clone)]
pub enum Found {
    Object(Object),
    /// With the first page of everything below.
    Folder(Page),
}

/// Looks for an object of that name, then for a folder.
pub async fn find(endpoint: &StorePath) -> Result<Option<Found>> {
    if !endpoint.path.is_empty()
        && let Some(object) = endpoint.store.head(&endpoint.key()?).await?
    {
        return Ok(Some(Found::Object(object)));
    }
    let page = endpoint.store.list(&endpoint.prefix(), true, None).await?;
    let is_there = !page.objects.is_empty()
        || !page.unsupported.is_empty()
        || !page.marks.is_empty()
        || page.next.is_some();
    let is_folder = is_there
        || (!endpoint.path.is_empty()
            && endpoint
                .store
                .folder_mark(&endpoint.key()?)
                .await?
                .is_some());
    Ok(is_folder.then_some(Found::Folder(page)))
}

/// The error for a path with nothing at it, with the nearest name beside it.
pub async fn nothing_at(endpoint: &StorePath) -> Error {
    if endpoint.path.is_empty() {
        return Error::not_found(format!("there is nothing in {}", endpoint.store.place()));
    }
    let (parent, name) = endpoint
        .path
        .rsplit_once('/')
        .map_or((String::new(), endpoint.path.as_str()), |(parent, name)| {
            (format!("{parent}/"), name)
        });
    let error = Error::not_found(format!(
        "there is nothing at `{}` in {}",
        crate::data::shown(&endpoint.path),
        endpoint.store.place()
    ));
    let Ok(page) = endpoint.store.list(&parent, false, None).await else {
        return error;
    };
    if let Some(entry) = page
        .unsupported
        .iter()
        .find(|entry| entry.name == endpoint.path)
    {
        return Error::unsupported(format!(
            "`{}` in {} cannot be used: {}",
            entry.name,
            endpoint.store.place(),
            entry.why
        ));
    }
    let names = page
        .folders
        .iter()
        .map(String::as_str)
        .chain(page.objects.iter().map(|object| object.key.name()))
        .filter(|near| *near != name);
    error.maybe_hint(
        towline_core::suggest::nearest(name, names)
            .map(|near| format!("did you mean `{parent}{near}`?")),
    )
}
