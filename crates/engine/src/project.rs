//! The project around a folder: its root, and the commit that git has there.

use std::path::{Path, PathBuf};
use towline_core::resolve::GitState;
use towline_import::read_plain;

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
    towline_host::git::has_changes(root, &git)
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
