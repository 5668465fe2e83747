//! ACT's own files, used in place: every `aux_data/aml/NAME.yaml` is a cluster `NAME`, by the same
//! conversion as `tow import act`. They are a layer of the configuration, between the user's file
//! and `towline.yaml`. Nothing of them is copied, and credentials stay in their account files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use towline_core::Error;
use towline_core::yaml::{Node, Position, Warning};
use towline_import::act::{Accounts, read_in_place};
use towline_import::act_folders::{exclude_missing_folders, share_folders};
use towline_import::{Reader, read_plain};

/// The folder of ACT's cluster files, below the folder that ACT is started in.
pub const ACT_CLUSTERS_FOLDER: &str = "aux_data/aml";
/// The variable that names the default cluster's file, and the default without it.
const ACT_CLUSTER_FILE_VARIABLE: &str = "AML_CONFIG_PATH";
const ACT_DEFAULT_CLUSTER: &str = "aml";

/// The files of ACT around a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActLayout {
    /// The folder that holds `aux_data`. Relative paths in the files begin there.
    root: PathBuf,
    /// `AML_CONFIG_PATH`.
    chosen: Option<PathBuf>,
}

/// The configuration that the files give.
#[derive(Debug)]
pub(crate) struct ActLayer {
    pub(crate) tree: Node,
    /// Clusters whose files cannot be read, with the file and its error.
    pub(crate) broken: BTreeMap<String, (PathBuf, Error)>,
    /// Keys that neither ACT nor Towline knows, and values without effect.
    pub(crate) warnings: Vec<Warning>,
}

impl ActLayer {
    /// Adds warnings. A warning about a file that several clusters build on is added once.
    fn warn(&mut self, warnings: Vec<Warning>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

/// The nearest folder upward that ACT was used in. A folder above a `towline.yaml` belongs to
/// another project.
pub fn root(folder: &Path) -> Option<&Path> {
    for folder in folder.ancestors() {
        if folder.join(ACT_CLUSTERS_FOLDER).is_dir() {
            return Some(folder);
        }
        if folder.join(crate::layers::PROJECT_FILE).exists() {
            return None;
        }
    }
    None
}

impl ActLayout {
    pub fn find(folder: &Path, environment: &[(String, String)]) -> Option<Self> {
        let chosen = environment
            .iter()
            .find(|(name, value)| name == ACT_CLUSTER_FILE_VARIABLE && !value.is_empty())
            .map(|(_, path)| folder.join(path));
        let root = root(folder);
        (root.is_some() || chosen.is_some()).then(|| Self {
            root: root.unwrap_or(folder).to_owned(),
            chosen,
        })
    }

    /// The folder that relative paths begin at.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path that is read: the folder of the cluster files, or the one file that was chosen.
    pub fn clusters(&self) -> PathBuf {
        let folder = self.root.join(ACT_CLUSTERS_FOLDER);
        match &self.chosen {
            Some(file) if !folder.is_dir() => file.clone(),
            _ => folder,
        }
    }

    /// The configuration of the files, and the digest of all files that were read for it, with
    /// account files and base files.
    pub(crate) fn layer(&self) -> (ActLayer, String) {
        let seen = RefCell::new(BTreeMap::new());
        let read = |file: &Path| {
            if let Some(why) = towline_host::owner::distrust(file)? {
                return Err(std::io::Error::new(
                    std::io::ErrorKind::PermissionDenied,
                    format!("it {why}, so it is not obeyed"),
                ));
            }
            let text = read_plain(file)?;
            seen.borrow_mut().insert(file.to_owned(), text.clone());
            Ok(text)
        };
        let layer = self.layer_with(&read);
        let seen = seen.into_inner();
        let digest = crate::trust::digest(
            seen.iter()
                .map(|(file, text)| (file.as_path(), text.as_bytes())),
        );
        (layer, digest)
    }

    fn layer_with(&self, read: Reader<'_>) -> ActLayer {
        let mut files = self.files();
        let default = self.default_file(&files);
        if let Some((name, file, _)) = &default {
            files.insert(name.clone(), file.clone());
        }
        let mut layer = ActLayer {
            tree: Node::empty_mapping(ACT_CLUSTERS_FOLDER),
            broken: BTreeMap::new(),
            warnings: Vec::new(),
        };
        let mut accounts = Accounts::in_place();
        for (name, file) in files {
            match read_in_place(&name, &file, &self.root, read, &mut accounts) {
                Ok((cluster, warnings)) => {
                    layer.tree.overlay(cluster);
                    layer.warn(warnings);
                }
                Err(error) => drop(layer.broken.insert(name, (file, error))),
            }
        }
        if let Some((name, _, origin)) = default {
            share_folders(&mut layer.tree, &name);
            exclude_missing_folders(&mut layer.tree);
            layer.tree.put(
                &["default_cluster"],
                Node::scalar(
                    name,
                    Position {
                        source: origin.as_str().into(),
                        line: 0,
                        column: 0,
                    },
                ),
            );
        }
        layer
    }

    fn files(&self) -> BTreeMap<String, PathBuf> {
        let entries = fs::read_dir(self.root.join(ACT_CLUSTERS_FOLDER))
            .into_iter()
            .flatten()
            .flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        files
            .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
            .filter(|(name, _)| !name.starts_with('.'))
            .collect()
    }

    /// Name and file of the default cluster, and the setting that chose it. Behind a link the name
    /// is that of the target file, as ACT shows it.
    fn default_file(&self, files: &BTreeMap<String, PathBuf>) -> Option<(String, PathBuf, String)> {
        let (file, origin) = match &self.chosen {
            Some(file) => (file.clone(), ACT_CLUSTER_FILE_VARIABLE.to_owned()),
            None => files
                .get(ACT_DEFAULT_CLUSTER)
                .map(|file| (file.clone(), file.display().to_string()))?,
        };
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        let name = real
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())?;
        let known = files
            .get(&name)
            .filter(|known| known.canonicalize().is_ok_and(|known| known == real));
        Some((name, known.cloned().unwrap_or(file), origin))
    }
}
