//! The survey of a code tree: which files go into the snapshot, and which stay here.

use super::{CodePlace, withheld};
use crate::layers::Layers;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use towline_core::config::{Config, Folder, StoreKind};
use towline_core::quantity::Memory;
use towline_core::resolve::{FrozenCode, MappedPlace};
use towline_core::{Error, Result};
use towline_host::surroundings;
use towline_snapshot::digest::Digest;
use towline_snapshot::rules::{Rules, Why};
use towline_snapshot::walk::{Limits, Walked, walk};
use towline_wire::layout::StateFolder;

/// A larger tree is data, or the wrong folder.
const CODE_LIMITS: Limits = Limits {
    files: 50_000,
    bytes: 2 << 30,
};
/// The most links to ignored paths in a local run.
const MOST_LINKS: usize = 50_000;

/// The files that a snapshot would hold.
#[derive(Debug)]
pub struct Survey {
    pub root: PathBuf,
    pub workdir: PathBuf,
    pub walked: Walked,
    /// Mapped folders that the tree lacks, with their place in a folder datastore.
    mapped: BTreeMap<String, MappedPlace>,
}

/// The user's options.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish<'a> {
    pub ignore: &'a [String],
    /// Any number of files, of any size.
    pub large: bool,
}

/// Walks the tree. No file is read yet.
pub fn survey(
    layers: &Layers,
    state: &StateFolder,
    place: &CodePlace,
    wish: &Wish<'_>,
) -> Result<Survey> {
    let mapped = layers
        .config
        .folders
        .keys()
        .chain(&layers.described_folders)
        .map(PathBuf::from)
        .collect::<Vec<_>>();
    let rules = Rules::new(&place.root, wish.ignore, mapped)?
        .without_credentials(withheld::files(&layers.config, &place.root));
    let own = state
        .root()
        .parent()
        .and_then(|folder| folder.canonicalize().ok());
    let rules = match own {
        Some(own) => rules.without_folder(own),
        None => rules,
    };
    let limits = if wish.large {
        Limits::none()
    } else {
        CODE_LIMITS
    };
    let walked = walk(&place.root, &rules, limits)?;
    check_size(&place.root, &walked, limits)?;
    Ok(Survey {
        root: place.root.clone(),
        workdir: place.workdir.clone(),
        walked,
        mapped: elsewhere(&layers.config, &place.root),
    })
}

/// Folders of the configuration that the tree lacks and a folder datastore of this machine has.
fn elsewhere(config: &Config, root: &Path) -> BTreeMap<String, MappedPlace> {
    let missing = config
        .folders
        .iter()
        .filter(|(name, _)| root.join(name).symlink_metadata().is_err());
    let place = |folder: &Folder| {
        let store = config
            .datastores
            .get(&folder.datastore)
            .filter(|store| store.kind == StoreKind::Folder)?;
        let path = store.path.as_deref()?;
        let home = surroundings::home();
        let base = path
            .strip_prefix("~/")
            .zip(home)
            .map_or_else(|| PathBuf::from(path), |(below, home)| home.join(below));
        base.join(folder.path.trim_matches('/'))
            .into_os_string()
            .into_string()
            .ok()
    };
    missing
        .filter_map(|(name, folder)| Some((name.clone(), MappedPlace::Path(place(folder)?))))
        .collect()
}

fn check_size(root: &Path, walked: &Walked, limits: Limits) -> Result<()> {
    let (files, bytes) = (walked.files(), walked.bytes());
    if files <= limits.files && bytes <= limits.bytes {
        return Ok(());
    }
    let more = if walked.cut_short { "more than " } else { "" };
    let largest = walked.largest();
    let named: Vec<String> = largest
        .iter()
        .take(4)
        .map(|(files, bytes, name)| format!("{name} ({files} files, {})", Memory(*bytes)))
        .collect();
    Err(Error::too_large(format!(
        "{} holds {more}{files} files, {}: code is at most {} files and {}",
        root.display(),
        Memory(bytes),
        limits.files,
        Memory(limits.bytes)
    ))
    .hint(format!("largest: {}", named.join(", ")))
    .hint(
        "leave data out by `.towignore` or `code.ignore` (a local run gets a link to it), or run \
        in the folder itself with --in-place",
    ))
}

impl Survey {
    /// The code as the plan names it, without a snapshot yet.
    pub fn frozen(&self) -> Result<FrozenCode> {
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or_else(|| {
                Error::unsupported(format!(
                    "the folder {} has a name that is not UTF-8",
                    path.display()
                ))
            })
        };
        let linked = self
            .walked
            .left_out
            .iter()
            .filter(|left| left.is_linked())
            .filter_map(|left| std::str::from_utf8(&left.path).ok());
        Ok(FrozenCode {
            snapshot: None,
            root: text(&self.root)?,
            workdir: text(
                self.workdir
                    .strip_prefix(&self.root)
                    .unwrap_or(Path::new("")),
            )?,
            files: self.walked.files() as u64,
            bytes: self.walked.bytes(),
            links: linked.take(MOST_LINKS).map(str::to_owned).collect(),
            mapped: self.mapped.clone(),
        })
    }

    /// The note about ignored paths without a link in a local run. The user must know, because half
    /// a dataset looks like a whole one.
    pub fn unlinked(&self) -> Option<String> {
        let wanted = self.walked.left_out.iter().filter(|left| left.is_linked());
        let (text, odd): (Vec<_>, Vec<_>) =
            wanted.partition(|left| std::str::from_utf8(&left.path).is_ok());
        let missing = text.len().saturating_sub(MOST_LINKS) + odd.len();
        (missing > 0).then(|| {
            format!(
                "{missing} of the paths that the ignore rules leave out are \
            not linked: ignore their folder instead, or use --in-place"
            )
        })
    }

    /// The note about files with credentials, which stay here.
    pub fn withheld(&self) -> Option<String> {
        let kept: Vec<_> = self
            .walked
            .left_out
            .iter()
            .filter(|left| left.why == Why::Credential)
            .map(|left| String::from_utf8_lossy(&left.path))
            .collect();
        (!kept.is_empty()).then(|| {
            format!(
                "what holds credentials does not travel with the code: {}",
                kept.join(", ")
            )
        })
    }

    /// The name of its stat cache.
    pub(super) fn tree_name(&self) -> String {
        Digest::of(self.root.as_os_str().as_encoded_bytes()).short()
    }
}
