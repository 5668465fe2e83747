//! The places of a workspace and of its backups, on the machine that has them.

use crate::Datastores;
use crate::remote::RemoteStore;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result};
use towline_host::surroundings;
use towline_snapshot::digest::Digest;
use towline_snapshot::store::{BlobStore, FolderStore};
use towline_wire::layout::StateFolder;
use towline_wire::workspace::Destination;

/// A place for backups, and its index on this machine.
pub(crate) struct Backups {
    pub(crate) store: Arc<dyn BlobStore>,
    /// For people.
    pub(crate) shown: String,
    pub(crate) index: PathBuf,
    /// A folder of this machine.
    pub(crate) folder: Option<PathBuf>,
}

impl Backups {
    /// Removes partial files from before that moment. A datastore does so by itself.
    pub(crate) fn clear_parts(&self, before: i64) {
        if let Some(folder) = &self.folder {
            FolderStore::new(folder).clear_incoming_before(before);
        }
    }
}

/// A path as the user wrote it: `~`, `$USER` and `$HOME` are this machine's.
pub(crate) fn expand(text: &str) -> Result<PathBuf> {
    let home = surroundings::home();
    let variable = |name: &str| match name {
        "HOME" => home.as_ref().map(|home| home.display().to_string()),
        name => surroundings::variable(name),
    };
    let text = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = variable("HOME")
                .ok_or_else(|| Error::config(format!("`{text}`: there is no home folder")))?;
            format!("{home}{rest}")
        }
        _ => text.to_owned(),
    };
    let mut whole = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        whole.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (name, after) = match rest.strip_prefix('{') {
            Some(inner) => inner
                .split_once('}')
                .ok_or_else(|| Error::config(format!("`{text}`: a `${{` without its `}}`")))?,
            None => rest.split_at(
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(rest.len()),
            ),
        };
        let value = variable(name).filter(|value| !value.is_empty());
        whole += &value.ok_or_else(|| {
            Error::config(format!("`{text}`: ${name} is not set there")).hint("write the path out")
        })?;
        rest = after;
    }
    whole.push_str(rest);
    let path = PathBuf::from(&whole);
    if !path.is_absolute()
        || path
            .components()
            .any(|part| part == std::path::Component::ParentDir)
    {
        return Err(
            Error::config(format!("`{whole}` is no place for a workspace"))
                .hint("write a whole path: /scratch/$USER/work"),
        );
    }
    if path.parent().is_none() || Some(&path) == home.as_ref() {
        return Err(
            Error::config(format!("`{whole}` holds more than a workspace"))
                .hint("take a folder below it"),
        );
    }
    Ok(path)
}

pub(crate) fn backups(
    state: &StateFolder,
    name: &str,
    to: &Destination,
    (datastores, secrets): (Datastores, &SecretSet),
) -> Result<Backups> {
    match to {
        Destination::Folder(text) => {
            let folder = expand(text)?;
            let mark = Digest::of(folder.as_os_str().as_encoded_bytes()).short();
            let store = Arc::new(FolderStore::new(&folder).without_whole_files());
            Ok(Backups {
                store,
                shown: folder.display().to_string(),
                index: state.store_index(&mark),
                folder: Some(folder),
            })
        }
        Destination::Store { store, path } => {
            let data = (datastores.open)(store, secrets)?;
            let prefix = [path.trim_matches('/'), name]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("/");
            let remote = RemoteStore::new(data, prefix.clone(), (datastores.runtime)()?)?;
            Ok(Backups {
                index: remote.index(state),
                store: Arc::new(remote),
                shown: format!("{}:{prefix}", store.name),
                folder: None,
            })
        }
    }
}

/// A path without symbolic links, as far as it exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    let found = path
        .ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)));
    found.map_or_else(
        || path.to_owned(),
        |(above, real)| real.join(path.strip_prefix(above).unwrap_or(Path::new(""))),
    )
}

/// Whether the backups are on the same disk as the workspace; `false` if that is unknown.
pub(crate) fn is_same_disk(workspace: &Path, backups: &Backups) -> bool {
    let device = |path: &Path| {
        path.ancestors()
            .find_map(|path| path.metadata().ok())
            .map(|meta| meta.dev())
    };
    backups
        .folder
        .as_ref()
        .is_some_and(|folder| device(folder).is_some() && device(folder) == device(workspace))
}
