//! What git says of a repository.

use std::path::Path;
use std::process::Command;

/// Whether tracked files differ from the commit that is checked out; `None` if git cannot say. The
/// caller has seen to it that the configuration of the repository names no programs, because `git
/// status` starts them.
pub fn has_changes(root: &Path, git_folder: &Path) -> Option<bool> {
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
        .arg(git_folder)
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
