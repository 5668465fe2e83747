//! Data by the same path on both sides: from what the user types to a place in a store and the
//! file or folder it belongs to here.

use crate::context::Context;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;
use towline_core::config::Config;
use towline_core::suggest::did_you_mean;
use towline_core::{Error, Result};
use towline_engine::flow::data::placing;
use towline_engine::project;
use towline_io::data::Data;
use towline_io::transfer::StorePath;
use towline_workspace::remote::RemoteStore;

/// The one runtime, made when first asked for.
pub(crate) fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = crate::wiring::threads::runtime()?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// Runs a part of a data verb to its end, or until Ctrl-C: `None`. The runtime is made here, so
/// that verbs that move no data do not wait for it; it lasts as long as we do, for connections
/// belong to it. What still reads or writes a file at the end is not waited for: a part file says
/// how far it came.
pub(crate) fn drive<T>(act: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    let runtime = runtime()?;
    runtime.block_on(async {
        tokio::select! {
            result = act => result.map(Some),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    })
}

/// Asks; `None` when Ctrl-C was the answer.
pub(crate) fn ask(question: &str) -> Result<Option<bool>> {
    let question = question.to_owned();
    drive(async move {
        tokio::task::spawn_blocking(move || crate::output::ask(&question))
            .await
            .map_err(|error| Error::bug("a task broke").source_error(error))
    })
}

/// A path in a store, and what belongs to it here.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) store_path: StorePath,
    pub(crate) local: PathBuf,
    /// As it is shown: what was typed, or its place in the store.
    pub(crate) shown: String,
}

/// Opens stores by name, each once.
pub(crate) struct Stores<'c> {
    context: &'c Context,
    opened: RefCell<BTreeMap<String, Arc<dyn Data>>>,
}

impl<'c> Stores<'c> {
    pub(crate) fn new(context: &'c Context) -> Self {
        Self {
            context,
            opened: RefCell::default(),
        }
    }

    pub(crate) fn open(&self, name: &str) -> Result<Arc<dyn Data>> {
        if let Some(store) = self.opened.borrow().get(name) {
            return Ok(store.clone());
        }
        let config = &self.context.layers()?.config;
        let datastore = config
            .datastores
            .get(name)
            .ok_or_else(|| no_store(config, name))?;
        let store = self
            .context
            .with_lookup(|lookup| towline_io::open::open(name, datastore, lookup))?;
        self.opened
            .borrow_mut()
            .insert(name.to_owned(), store.clone());
        Ok(store)
    }

    /// `STORE:PATH`, where a store is called so.
    pub(crate) fn explicit(&self, text: &str) -> Result<Option<StorePath>> {
        let Some((name, path)) = text
            .split_once(':')
            .filter(|(name, _)| !name.contains('/') && !name.is_empty())
        else {
            return Ok(None);
        };
        let config = &self.context.layers()?.config;
        if !config.datastores.contains_key(name) {
            // A file of that name is a file.
            let is_file = self.context.folder()?.join(text).symlink_metadata().is_ok();
            return if is_file {
                Ok(None)
            } else {
                Err(no_store(config, name))
            };
        }
        Ok(Some(StorePath {
            store: self.open(name)?,
            path: clean(path)?,
        }))
    }

    /// The place of a path: by its folder's mapping on that cluster, or `STORE:PATH`.
    pub(crate) fn location(&self, cluster: Option<&str>, text: &str) -> Result<Location> {
        let root = project::code_root(self.context.folder()?);
        if let Some(store_path) = self.explicit(text)? {
            return Ok(Location {
                local: root.join(&store_path.path),
                store_path,
                shown: text.to_owned(),
            });
        }
        let config = &self.context.layers()?.config;
        let below = below_root(&root, self.context.folder()?, text)?;
        let (folder, rest) = mapped(config, &below).ok_or_else(|| unmapped(config, &below))?;
        let (store, path) = placing(config, self.cluster(cluster)?.as_deref(), folder)?;
        let path = [clean(&path)?, rest]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("/");
        Ok(Location {
            store_path: StorePath {
                store: self.open(&store)?,
                path,
            },
            local: root.join(&below),
            shown: below,
        })
    }

    /// The cluster that is meant: the named one must be a cluster or a datastore.
    fn cluster(&self, named: Option<&str>) -> Result<Option<String>> {
        let layers = self.context.layers()?;
        match named {
            Some(name) if layers.config.datastores.contains_key(name) => Ok(Some(name.to_owned())),
            Some(name) if layers.has_cluster(name) => {
                layers.cluster(name).map(|_| Some(name.to_owned()))
            }
            Some(name) => {
                let known = layers
                    .cluster_names()
                    .into_iter()
                    .chain(layers.config.datastores.keys().map(String::as_str));
                Err(
                    Error::not_found(format!("no cluster or datastore is called `{name}`"))
                        .maybe_hint(did_you_mean(name, known)),
                )
            }
            None => Ok(layers.config.default_cluster.clone()),
        }
    }
}

/// The default path for snapshots in a datastore.
const DEFAULT_SNAPSHOT_PATH: &str = "towline";

/// Opens `STORE` or `STORE:PATH`.
pub(crate) fn remote_store(stores: &Stores<'_>, text: &str) -> Result<RemoteStore> {
    let (name, path) = text
        .split_once(':')
        .unwrap_or((text, DEFAULT_SNAPSHOT_PATH));
    let prefix = path.trim_matches('/').to_owned();
    RemoteStore::new(stores.open(name)?, prefix, runtime()?)
}

fn no_store(config: &Config, name: &str) -> Error {
    let known: Vec<&str> = config.datastores.keys().map(String::as_str).collect();
    let error = Error::not_found(format!("no datastore is called `{name}`"));
    if known.is_empty() {
        return error.hint(
            "write one under `datastores:` in towline.yaml: nas: {kind: folder, path: /mnt/nas}",
        );
    }
    error.hint(
        did_you_mean(name, known.iter().copied())
            .unwrap_or_else(|| format!("known: {}", known.join(", "))),
    )
}

/// The folder whose name the path begins with, part by part, and the rest.
fn mapped<'c>(config: &'c Config, below: &str) -> Option<(&'c str, String)> {
    let clusters = config
        .clusters
        .values()
        .flat_map(|cluster| cluster.folders.keys());
    let fits = |name: &&String| {
        let name = name.trim_matches('/');
        below == name
            || below
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let name = config
        .folders
        .keys()
        .chain(clusters)
        .filter(fits)
        .max_by_key(|name| name.len())?;
    Some((
        name,
        below[name.trim_matches('/').len()..]
            .trim_start_matches('/')
            .to_owned(),
    ))
}

fn unmapped(config: &Config, below: &str) -> Error {
    let shown = if below.is_empty() { "." } else { below };
    let error = Error::not_found(format!("no folder of the configuration holds `{shown}`"));
    let known: Vec<&str> = config.folders.keys().map(String::as_str).collect();
    if known.is_empty() {
        return error.hint(
            "say where it lies, in towline.yaml: `folders: {data: {datastore: NAME, \
            path: alice/data}}`; or use STORE:PATH",
        );
    }
    let first = below.split('/').next().unwrap_or_default();
    error.hint(
        did_you_mean(first, known.iter().copied())
            .unwrap_or_else(|| format!("known: {}; or use STORE:PATH", known.join(", "))),
    )
}

/// A path as typed in `folder`, relative to the code root. Words only: links are not looked at.
pub(crate) fn below_root(root: &Path, folder: &Path, text: &str) -> Result<String> {
    let typed = folder.join(text);
    let mut plain = PathBuf::new();
    for part in typed.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    let below = plain.strip_prefix(root).map_err(|_| {
        Error::usage(format!(
            "{} is outside the code root {}",
            plain.display(),
            root.display()
        ))
    })?;
    below
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::usage(format!("{} is not UTF-8", below.display())))
}

/// A path in a store without slashes around; `..` has no place there.
fn clean(path: &str) -> Result<String> {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let joined = parts.join("/");
    match towline_io::data::Key::new(joined.clone()) {
        Err(why) if !joined.is_empty() => Err(Error::usage(format!(
            "`{}` cannot be a path in a store: {why}",
            towline_io::data::shown(path)
        ))),
        _ => Ok(joined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = "
datastores: {us: {kind: folder, path: /us}, eu: {kind: folder, path: /eu}, nas: {kind: folder, \
    path: /nas}}
folders: {data: {datastore: us, path: alice/data}, data/raw: {datastore: nas, path: \
    raw}, out: {datastore: us}}
clusters: {europe: {kind: slurm, datastore: eu}, odd: {kind: slurm, folders: {data: {datastore: \
    nas, path: d}}}, plain: {kind: slurm}, act: {kind: azureml, without_folders: [out, data], \
        folders: {data: {datastore: eu, path: d}}}}";
        towline_core::yaml::decode(&towline_core::yaml::parse("t", text).expect("YAML"))
            .expect("decodes")
    }

    #[test]
    fn a_folder_is_found_by_whole_parts() {
        let config = config();
        for (path, folder, rest) in [
            ("data", "data", ""),
            ("data/voc", "data", "voc"),
            ("data/raw/x", "data/raw", "x"),
            ("data/raw2", "data", "raw2"),
            ("out/a/b", "out", "a/b"),
        ] {
            assert_eq!(
                mapped(&config, path),
                Some((folder, rest.to_owned())),
                "{path}"
            );
        }
        for path in ["", "data2", "dat", "other/data"] {
            assert_eq!(mapped(&config, path), None, "{path}");
        }
    }

    #[test]
    fn paths_are_below_the_root() {
        let below =
            |folder: &str, text: &str| below_root(Path::new("/code"), Path::new(folder), text);
        assert_eq!(below("/code", "data/x/").expect("below"), "data/x");
        assert_eq!(below("/code/data", "voc").expect("below"), "data/voc");
        assert_eq!(below("/code/data", "../out/./y").expect("below"), "out/y");
        assert_eq!(below("/elsewhere", "/code/data").expect("below"), "data");
        assert!(below("/code", "../x").is_err());
        assert!(clean("a/../b").is_err());
        assert_eq!(clean("/a//b/").expect("clean"), "a/b");
    }
}
