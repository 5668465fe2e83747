//! The requests that a proxy has received, and how they are counted.

use crate::real::fault::Fault;
use std::collections::BTreeMap;

/// A request that the proxy has received.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    /// With its query, without the signature.
    pub path: String,
    pub range: Option<String>,
    /// The operation, from its query: `blob` `block` `blocklist` `list` `container` `copy` `part` …
    pub kind: String,
    /// Bytes of the request's body that were read.
    pub body: u64,
    /// The status that the service answered with, if the answer was read.
    pub status: Option<u16>,
    /// The fault that was injected.
    pub fault: Option<Fault>,
}

/// A path without some parts of its query.
pub(super) fn without_parameters(path: &str, names: &[&str]) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|part| !names.contains(&part.split('=').next().unwrap_or_default()))
        .collect();
    if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", kept.join("&"))
    }
}

/// The operation of a request, from its query.
pub(super) fn kind(path: &str, copies: bool) -> String {
    let query: BTreeMap<&str, &str> = path
        .split_once('?')
        .map(|(_, query)| query)
        .unwrap_or_default()
        .split('&')
        .filter_map(|part| part.split_once('='))
        .collect();
    let word = if copies {
        "copy"
    } else if let Some(what) = query.get("comp") {
        what
    } else if query.get("restype") == Some(&"container") {
        "container"
    } else if query.contains_key("partNumber") {
        "part"
    } else if query.contains_key("uploadId")
        || path.ends_with("?uploads")
        || path.ends_with("?uploads=")
    {
        "upload"
    } else if query.contains_key("list-type") {
        "list"
    } else {
        "blob"
    };
    word.to_owned()
}

pub(super) fn tally(keys: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for key in keys {
        *tally.entry(key).or_default() += 1;
    }
    tally
}
