//! Which entries of a tree are left out, and why: by built-in rules, then the tree's ignore files,
//! then the job's `code.ignore`. A later rule wins, so `!assets` in an ignore file includes it
//! again.

use crate::manifest::Flavor;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_core::{Error, Result};

/// Our own ignore file. Where the root has one, it is read instead of `.gitignore`.
pub const OWN_FILE: &str = ".towignore";
/// Git's ignore file.
const GIT_FILE: &str = ".gitignore";

/// Why something was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A built-in rule, with its label.
    BuiltIn(&'static str),
    /// A pattern, and the file that has it (`code.ignore` for the job's).
    Pattern { pattern: String, from: String },
    /// A folder that `folders:` maps to a datastore.
    Mapped,
    /// A file with credentials.
    Credential,
    /// Neither file, folder nor link.
    Special(&'static str),
    /// A link that leads out of the tree. On another machine it would be broken.
    Outside,
    /// Towline's own state folder.
    Own,
    /// This user may not read it.
    Unreadable,
}

impl Why {
    fn is_linked(&self) -> bool {
        !matches!(
            self,
            Self::BuiltIn(CACHE_LABEL | "query results" | "desktop file")
                | Self::Special(_)
                | Self::Own
                | Self::Unreadable
        )
    }
}

/// The label of compiled code and the like, which must fit the code it lies beside.
const CACHE_LABEL: &str = "cache";

impl crate::walk::LeftOut {
    /// Whether a run on this machine gets a link to it. Caches are never shared, because an
    /// interpreter that trusts modification times would use the compiled code of another version.
    pub fn is_linked(&self) -> bool {
        let name = self
            .path
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default();
        self.why.is_linked() && !is_cache(name, self.is_folder)
    }
}

fn is_cache(name: &[u8], is_folder: bool) -> bool {
    match name {
        b"__pycache__"
        | b".mypy_cache"
        | b".pytest_cache"
        | b".ruff_cache"
        | b".ipynb_checkpoints"
        | b".hypothesis" => is_folder,
        _ => !is_folder && (name.ends_with(b".pyc") || name.ends_with(b".pyo")),
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn(what) => write!(f, "built in: {what}"),
            Self::Pattern { pattern, from } => write!(f, "`{pattern}` in {from}"),
            Self::Mapped => f.write_str("mapped to a datastore"),
            Self::Credential => f.write_str("holds credentials"),
            Self::Special(what) => write!(f, "is a {what}"),
            Self::Outside => f.write_str("is a link that leads out of the tree"),
            Self::Own => f.write_str("is Towline's own state"),
            Self::Unreadable => f.write_str("may not be read"),
        }
    }
}

/// The rules of one tree. Ignore files of its folders are added during the walk.
#[derive(Debug, Clone)]
pub struct Rules {
    flavor: Flavor,
    root: PathBuf,
    /// The name of the ignore files that are read.
    file: &'static str,
    job: Option<Arc<Gitignore>>,
    /// Folders below the root that are mapped to a datastore.
    mapped: Arc<BTreeSet<PathBuf>>,
    /// Files and folders below the root that hold credentials.
    keys: Arc<BTreeSet<PathBuf>>,
    /// Our own state folder.
    own: Option<PathBuf>,
    /// The ignore files above the root, up to the root of the repository.
    above: Option<Arc<Chain>>,
}

/// The ignore file of a folder, and those above it.
#[derive(Debug)]
pub struct Chain {
    rules: Gitignore,
    above: Option<Arc<Self>>,
}

impl Rules {
    /// `job` has the patterns of `code.ignore`, `mapped` the names under `folders:`.
    pub fn new(
        root: &Path,
        job: &[String],
        mapped: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self> {
        let file = if root.join(OWN_FILE).is_file() {
            OWN_FILE
        } else {
            GIT_FILE
        };
        Ok(Self {
            flavor: Flavor::Code,
            root: root.to_owned(),
            file,
            job: patterns(root, "code.ignore", job)?,
            mapped: Arc::new(mapped.into_iter().collect()),
            keys: Arc::default(),
            own: None,
            above: if file == GIT_FILE { above(root) } else { None },
        })
    }

    /// The rules of a workspace: everything but the entries that these patterns name.
    pub fn of_workspace(root: &Path, ignore: &[String]) -> Result<Self> {
        let job = patterns(root, "ignore", ignore)?;
        // No file has an empty name, so no ignore file is read.
        Ok(Self {
            flavor: Flavor::Workspace,
            root: root.to_owned(),
            file: "",
            job,
            mapped: Arc::default(),
            keys: Arc::default(),
            own: None,
            above: None,
        })
    }

    pub(crate) const fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Leaves that folder out, whatever the patterns say.
    #[must_use]
    pub fn without_folder(mut self, own: PathBuf) -> Self {
        self.own = Some(own);
        self
    }

    /// Leaves out these absolute paths, unless an ignore file includes one by name.
    #[must_use]
    pub fn without_credentials(mut self, keys: BTreeSet<PathBuf>) -> Self {
        self.keys = Arc::new(keys);
        self
    }

    pub(crate) const fn above(&self) -> Option<&Arc<Chain>> {
        self.above.as_ref()
    }

    /// The name of the ignore files.
    pub(crate) const fn file_name(&self) -> &'static str {
        self.file
    }

    /// The rules inside `folder`, which has an ignore file. It is an error if the file cannot be
    /// read, because the entries that it leaves out would be included.
    pub(crate) fn enter(
        &self,
        folder: &Path,
        above: Option<&Arc<Chain>>,
    ) -> std::io::Result<Option<Arc<Chain>>> {
        let file = folder.join(self.file);
        match check_plain(&file).and_then(|()| std::fs::File::open(&file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(read(folder, self.file).map(|rules| {
                Arc::new(Chain {
                    rules,
                    above: above.cloned(),
                })
            })),
        }
    }

    /// Why an entry is left out; `None` if it is not. `path` is absolute, below the root.
    pub(crate) fn judge(
        &self,
        path: &Path,
        name: &[u8],
        is_folder: bool,
        chain: Option<&Arc<Chain>>,
    ) -> Option<Why> {
        if is_folder && self.own.as_deref() == Some(path) {
            return Some(Why::Own);
        }
        if let Some(job) = &self.job
            && let Some(verdict) = verdict(&job.matched(path, is_folder))
        {
            return verdict.left_out();
        }
        let mut link = chain;
        while let Some(chain) = link {
            if !chain.rules.is_empty()
                && let Some(verdict) = verdict(&chain.rules.matched(path, is_folder))
            {
                return verdict.left_out();
            }
            link = chain.above.as_ref();
        }
        if self.flavor == Flavor::Workspace {
            return None;
        }
        if !self.mapped.is_empty()
            && path
                .strip_prefix(&self.root)
                .is_ok_and(|below| self.mapped.contains(below))
        {
            return Some(Why::Mapped);
        }
        if self.keys.contains(path) {
            return Some(Why::Credential);
        }
        built_in(path, name, is_folder, &self.root).map(Why::BuiltIn)
    }
}

/// A larger ignore file is refused: nobody wrote it by hand.
const MAX_IGNORE_FILE_BYTES: u64 = 16 << 20;

/// An error unless `file` is a plain file of sensible size. Reading a named pipe would never end,
/// and a device such as `/dev/zero` would fill the memory.
fn check_plain(file: &Path) -> std::io::Result<()> {
    let meta = std::fs::metadata(file)?;
    let refused = |what: String| Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
    match (meta.is_file(), meta.is_dir()) {
        (false, false) => refused("it is not a plain file".to_owned()),
        (true, _) if meta.len() > MAX_IGNORE_FILE_BYTES => refused(format!(
            "it is larger than {} MiB",
            MAX_IGNORE_FILE_BYTES >> 20
        )),
        _ => Ok(()),
    }
}

/// The verdict of a pattern on an entry.
enum Verdict {
    Belongs,
    LeftOut(Why),
}

impl Verdict {
    fn left_out(self) -> Option<Why> {
        match self {
            Self::Belongs => None,
            Self::LeftOut(why) => Some(why),
        }
    }
}

fn verdict(found: &Match<&ignore::gitignore::Glob>) -> Option<Verdict> {
    match found {
        Match::None => None,
        Match::Whitelist(_) => Some(Verdict::Belongs),
        Match::Ignore(glob) => {
            let from = glob.from().map_or_else(
                || "code.ignore".to_owned(),
                |file| {
                    file.file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned()
                },
            );
            Some(Verdict::LeftOut(Why::Pattern {
                pattern: glob.original().to_owned(),
                from,
            }))
        }
    }
}

fn built_in(path: &Path, name: &[u8], is_folder: bool, root: &Path) -> Option<&'static str> {
    match name {
        b".git" | b".hg" | b".svn" | b".jj" => Some("version control"),
        b".DS_Store" => Some("desktop file"),
        _ if is_cache(name, is_folder) => Some(CACHE_LABEL),
        _ if !is_folder => None,
        b".cache" => Some("downloads"),
        b".tox" | b".nox" | b".venv" => Some("virtual environment"),
        b"node_modules" => Some("packages"),
        b"assets" => (path.parent() == Some(root)).then_some("query results"),
        b"venv" | b"env" | b".env" | b"conda" | b"virtualenv" => (path.join("pyvenv.cfg").exists()
            || path.join("conda-meta").exists())
        .then_some("virtual environment"),
        _ => None,
    }
}

/// The ignore files of the folders between the repository's root and ours.
fn above(root: &Path) -> Option<Arc<Chain>> {
    if root.join(".git").exists() {
        return None;
    }
    let repository = root
        .ancestors()
        .skip(1)
        .find(|folder| folder.join(".git").exists())?;
    let mut folders: Vec<&Path> = root
        .ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(repository))
        .collect();
    folders.reverse();
    folders
        .into_iter()
        .fold(None, |above, folder| match read(folder, GIT_FILE) {
            Some(rules) => Some(Arc::new(Chain { rules, above })),
            None => above,
        })
}

/// Reads an ignore file. Lines that are no pattern are skipped, as git does.
fn read(folder: &Path, file: &str) -> Option<Gitignore> {
    let path = folder.join(file);
    path.is_file().then(|| {
        let mut builder = GitignoreBuilder::new(folder);
        let _ = builder.add(path);
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    })
}

/// The patterns of a configuration's `key`. A line that is no pattern is an error.
fn patterns(root: &Path, key: &'static str, lines: &[String]) -> Result<Option<Arc<Gitignore>>> {
    let mut builder = GitignoreBuilder::new(root);
    for line in lines {
        builder.add_line(Some(key.into()), line).map_err(|error| {
            Error::config(format!(
                "`{key}`: `{line}` is no pattern: {}",
                reason(&error)
            ))
        })?;
    }
    let built = builder
        .build()
        .map_err(|error| Error::config(format!("`{key}`: {}", reason(&error))))?;
    Ok((!built.is_empty()).then(|| Arc::new(built)))
}

fn reason(error: &ignore::Error) -> String {
    error.to_string()
}
