//! The code of a job: where it lies, what of it travels, and taking it.

use crate::ahead::Ahead;
use crate::context::Context;
use crate::means::OwnMeans;
use crate::progress::Bar;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use towline_core::config::Folder;
use towline_core::quantity::Memory;
use towline_core::resolve::FrozenCode;
use towline_core::{Error, Result};
use towline_engine::flow::{CodePlace, too_wide};
use towline_host::lock;
use towline_host::surroundings;
use towline_snapshot::digest::Digest;
use towline_snapshot::progress::Progress;
use towline_snapshot::rules::{Rules, Why};
use towline_snapshot::store::{BlobStore, FolderStore};
use towline_snapshot::take::{Options, Taken, take_walked};
use towline_snapshot::walk::{Limits, Walked, walk};
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;

/// More than this is data, or a folder that nobody meant.
const CODE_LIMITS: Limits = Limits {
    files: 50_000,
    bytes: 2 << 30,
};
/// Links to what was left out; more of them are no help to anybody.
const MOST_LINKS: usize = 50_000;

/// What would travel.
pub(crate) struct Survey {
    pub(crate) root: PathBuf,
    pub(crate) workdir: PathBuf,
    pub(crate) walked: Walked,
    /// Mapped folders that are not there, with their place in a folder datastore.
    mapped: BTreeMap<String, String>,
}

/// How the user wants it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wish<'a> {
    pub(crate) ignore: &'a [String],
    /// Any number of files, of any size.
    pub(crate) large: bool,
}

/// Bytes for people: a small number is not mistaken for a count.
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else {
        Memory(bytes).to_string()
    }
}

/// Why no code travels from a folder: said in the plan.
pub(crate) fn stays(place: &CodePlace) -> Option<String> {
    let home = surroundings::home();
    too_wide(&place.root, home.as_deref()).map(|what| {
        format!(
            "{} is {what}: no code travels from there",
            place.root.display()
        )
    })
}

/// Walks the tree; nothing of it is read yet.
pub(crate) fn survey(context: &Context, place: &CodePlace, wish: &Wish<'_>) -> Result<Survey> {
    let layers = context.layers()?;
    let mapped = layers
        .config
        .folders
        .keys()
        .chain(&layers.described_folders)
        .map(PathBuf::from)
        .collect::<Vec<_>>();
    let rules = Rules::new(&place.root, wish.ignore, mapped)?
        .without_credentials(crate::withheld::files(&layers.config, &place.root));
    let own = context
        .state()?
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
        mapped: elsewhere(context, &place.root)?,
    })
}

/// Folders of the configuration that are not there but lie in a folder of this machine.
fn elsewhere(context: &Context, root: &Path) -> Result<BTreeMap<String, String>> {
    let config = &context.layers()?.config;
    let missing = config
        .folders
        .iter()
        .filter(|(name, _)| root.join(name).symlink_metadata().is_err());
    let place = |folder: &Folder| {
        let store = config
            .datastores
            .get(&folder.datastore)
            .filter(|store| store.kind == "folder")?;
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
    Ok(missing
        .filter_map(|(name, folder)| Some((name.clone(), place(folder)?)))
        .collect())
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
    Err(Error::refused(format!(
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
    /// As the plan has it, without a snapshot yet.
    pub(crate) fn frozen(&self) -> Result<FrozenCode> {
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or_else(|| {
                Error::refused(format!(
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

    /// What a local run does without although it is not code: said, because half a dataset looks
    /// like a whole one.
    pub(crate) fn unlinked(&self) -> Option<String> {
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

    /// What holds credentials and stays here, as a note.
    pub(crate) fn withheld(&self) -> Option<String> {
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
    fn tree_name(&self) -> String {
        Digest::of(self.root.as_os_str().as_encoded_bytes()).short()
    }
}

/// The local store, kept from being pruned for as long as this lives.
pub(crate) struct LocalStore {
    pub(crate) store: FolderStore,
    _lock: File,
}

/// Opens the local store; others may, too, but nobody drops anything meanwhile.
pub(crate) fn local_store(state: &StateFolder) -> Result<LocalStore> {
    let lock = open_lock(state)?;
    lock::lock_shared(&lock)
        .map_err(|error| Error::refused("the snapshots cannot be locked").source_error(error))?;
    Ok(LocalStore {
        store: FolderStore::new(state.snapshots()),
        _lock: lock,
    })
}

pub(crate) fn open_lock(state: &StateFolder) -> Result<File> {
    let failed = |error| {
        Error::refused(format!("{} cannot be used", state.root().display())).source_error(error)
    };
    towline_host::filesystem::private_folder(state.root()).map_err(failed)?;
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(state.snapshots_lock())
        .map_err(failed)
}

/// Takes the snapshot into `store`. Once this returns it is there, all of it.
pub(crate) fn take(
    context: &Context,
    survey: Survey,
    store: &dyn BlobStore,
    index: PathBuf,
) -> Result<Taken> {
    let state = context.state()?;
    let name = survey
        .root
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let options = Options {
        limits: Limits::none(),
        compression: towline_snapshot::pack::Compression::QUICK,
        name,
        now: towline_host::clock::now().0.saturating_mul(1_000_000),
        stat_cache: state.stat_cache(&survey.tree_name()),
        index,
    };
    let progress = Progress::default();
    let bar = Bar::new("snapshot");
    let root = survey.root.clone();
    let taken = bar.watch(
        || progress.read(),
        || take_walked(&root, survey.walked, store, &options, &progress),
    )?;
    for path in &taken.unsteady {
        crate::output::status(&format!("warning: {path} changed while it was read"));
    }
    Ok(taken)
}

/// Into the local store.
pub(crate) fn take_here(context: &Context, survey: Survey, store: &LocalStore) -> Result<Taken> {
    take(context, survey, &store.store, local_index(context)?)
}

fn local_index(context: &Context) -> Result<PathBuf> {
    Ok(context.state()?.snapshots().join("index"))
}

/// Into the local store, and what is new of it to a far cluster at once.
pub(crate) fn take_ahead(
    context: &Context,
    survey: Survey,
    store: &LocalStore,
    named: &NamedCluster,
) -> Result<Taken> {
    let (named, means) = (named.clone(), OwnMeans::new(context.state()?));
    let ahead = Ahead::new(
        &store.store,
        Box::new(move || towline_backends::registry::open(&named, &means)),
    );
    let taken = take(context, survey, &ahead, local_index(context)?);
    ahead.finish();
    taken
}
