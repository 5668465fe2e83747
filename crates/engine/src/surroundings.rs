//! Facts that only the submitter's machine knows: folders, variables, git.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use towline_core::redact::Secret;
use towline_core::resolve::GitState;
use towline_core::{Error, Result};
use towline_import::read_plain;

/// The variables of this process.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Those that are valid UTF-8.
    pub variables: Vec<(String, String)>,
    /// The names of the others, which cannot be stored.
    pub not_utf8: Vec<String>,
}

pub fn environment() -> Environment {
    let mut found = Environment::default();
    for (name, value) in std::env::vars_os() {
        match name
            .to_str()
            .map(str::to_owned)
            .zip(value.into_string().ok())
        {
            Some(pair) => found.variables.push(pair),
            None => found.not_utf8.push(name.to_string_lossy().into_owned()),
        }
    }
    found
}

/// `$XDG_STATE_HOME/towline/<host>`, or `~/.local/state/towline/<host>`.
pub fn state_folder() -> Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state_home =
        absolute("XDG_STATE_HOME").or_else(|| home().map(|home| home.join(".local/state")));
    let state_home = state_home.ok_or_else(|| {
        Error::config("neither HOME nor XDG_STATE_HOME is set").hint("set HOME to your home folder")
    })?;
    Ok(state_home.join("towline").join(host_name()))
}

/// The home folder: `$HOME`, else the entry in `/etc/passwd`. A static program cannot use NSS.
pub fn home() -> Option<PathBuf> {
    if let Some(home) = std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
    {
        return Some(home);
    }
    let own = rustix::process::getuid().as_raw().to_string();
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let fields = text
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&own.as_str()))?;
    fields.get(5).map(PathBuf::from)
}

pub fn host_name() -> String {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let safe: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    if safe.trim_matches('.').is_empty() {
        "localhost".to_owned()
    } else {
        safe
    }
}

/// The nearest folder upward with `towline.yaml` or ACT's `aux_data/aml`, else the git root, else
/// `folder` itself. A folder that another user owns, or that anybody can write, is not taken.
pub fn code_root(folder: &Path) -> PathBuf {
    let upward = |name: &str| {
        folder
            .ancestors()
            .find(|folder| is_ours(&folder.join(name)))
            .map(Path::to_owned)
    };
    let act = crate::act_layout::root(folder)
        .filter(|root| is_ours(&root.join(crate::act_layout::ACT_CLUSTERS_FOLDER)))
        .map(Path::to_owned);
    act.or_else(|| upward(crate::layers::PROJECT_FILE))
        .or_else(|| upward(crate::layers::GIT_ENTRY))
        .unwrap_or_else(|| folder.to_owned())
}

/// Whether the path exists and no other user could have written it.
fn is_ours(path: &Path) -> bool {
    matches!(towline_host::owner::distrust(path), Ok(None))
}

/// The commit of the repository around a folder.
pub fn git_around(folder: &Path) -> Option<GitState> {
    git_state(repository_around(folder)?)
}

/// The nearest folder upward with a repository of this user.
fn repository_around(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .find(|folder| is_ours(&folder.join(crate::layers::GIT_ENTRY)))
}

/// The commit that is checked out, read from git's own files: no program is started. Only plain
/// files of a limited size are read, because the author of the repository chose them.
pub fn git_state(root: &Path) -> Option<GitState> {
    let git = git_folder(root)?;
    let head = read_plain(&git.join("HEAD")).ok()?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return Some(GitState {
            commit: head.trim().to_owned(),
            branch: None,
            dirty: None,
        });
    };
    let branch = reference.strip_prefix("refs/heads/").map(str::to_owned);
    let common = read_plain(&git.join("commondir"))
        .map_or_else(|_| git.clone(), |folder| git.join(folder.trim()));
    let loose = read_plain(&common.join(reference))
        .ok()
        .map(|text| text.trim().to_owned());
    let packed = || {
        let text = read_plain(&common.join("packed-refs")).ok()?;
        text.lines().find_map(|line| {
            line.strip_suffix(reference)
                .map(|commit| commit.trim().to_owned())
        })
    };
    loose.or_else(packed).map(|commit| GitState {
        commit,
        branch,
        dirty: None,
    })
}

/// Whether tracked files of the repository around a folder differ from the commit, as git reports;
/// `None` if it cannot. A repository's own configuration can name programs that `git status`
/// starts. Then git is not run.
pub fn is_dirty(folder: &Path) -> Option<bool> {
    let root = repository_around(folder)?;
    let git = git_folder(root).filter(|git| is_ours(git))?;
    if names_programs(&git) {
        return None;
    }
    let mut command = Command::new("git");
    // A read must not write: other programs may hold the index.
    command.env("GIT_OPTIONAL_LOCKS", "0").args([
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
    ]);
    // Git must not search for a repository: it could find another one than the one whose
    // configuration was read.
    command
        .arg("-C")
        .arg(root)
        .arg("--git-dir")
        .arg(&git)
        .arg("--work-tree")
        .arg(root);
    command.args([
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--ignore-submodules=all",
    ]);
    let output = command.output().ok()?;
    output.status.success().then_some(!output.stdout.is_empty())
}

/// Texts of git's configuration, in lower case, by which a repository may name programs for `git
/// status`: filters, included files, and a remote that fetches missing objects.
const PROGRAM_NAMING_SETTINGS: [&str; 4] = ["[filter", "[include", "promisor", "partialclone"];

/// Whether the configuration inside a repository names programs. One line of it may hold two
/// sections.
fn names_programs(git: &Path) -> bool {
    let common = read_plain(&git.join("commondir"))
        .ok()
        .map(|folder| git.join(folder.trim()).join("config"));
    let files = [
        Some(git.join("config")),
        Some(git.join("config.worktree")),
        common,
    ];
    files
        .into_iter()
        .flatten()
        .any(|file| match read_plain(&file) {
            Ok(text) => {
                let text = text.to_lowercase();
                PROGRAM_NAMING_SETTINGS
                    .iter()
                    .any(|word| text.contains(word))
            }
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        })
}

/// The folder where git stores a repository or one of its worktrees.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    match read_plain(&dot_git) {
        // A worktree: the file names the real folder.
        Ok(text) => Some(root.join(text.strip_prefix("gitdir:")?.trim())),
        Err(_) => Some(dot_git),
    }
}

/// The umask of this process, without changing it.
pub fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let text = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .unwrap_or("0022");
    u32::from_str_radix(text.trim(), 8).unwrap_or(0o022)
}

/// The program that reads the keyring.
const KEYRING_PROGRAM: &str = "secret-tool";

/// Whether this machine has a keyring that can be read.
pub fn has_keyring() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(KEYRING_PROGRAM).is_file())
}

/// Values of `names` in the keyring, read by `secret-tool` if it is installed.
pub fn keyring(names: &[String], environment: &[(String, String)]) -> BTreeMap<String, Secret> {
    let missing = names
        .iter()
        .filter(|name| !environment.iter().any(|(known, _)| known == *name));
    missing
        .filter_map(|name| {
            let output = Command::new(KEYRING_PROGRAM)
                .args(["lookup", "towline", name])
                .output()
                .ok()?;
            let value = String::from_utf8(output.stdout).ok()?;
            (output.status.success() && !value.is_empty())
                .then(|| (name.clone(), Secret::new(value.trim_end_matches('\n'))))
        })
        .collect()
}
