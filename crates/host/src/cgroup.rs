//! Control groups (version 2). Every process that is started inside a group stays inside, however
//! it forks. Where this user may not make a group, only subreapers are used.

use std::fs;
use std::path::{Path, PathBuf};

/// Version 2 is mounted here: alone, or beside version 1.
const CGROUP_MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Makes the group `name` below our own and moves this process into it; `None` if that is not
/// allowed.
pub fn enter(name: &str) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))?
        .trim_start_matches('/');
    let parent = CGROUP_MOUNTS
        .iter()
        .map(|mount| Path::new(mount).join(path))
        .find(|folder| folder.join("cgroup.procs").exists())?;
    let group = parent.join(format!("towline-{name}"));
    fs::create_dir(&group).ok()?;
    // A group is useful only if all of it can be killed.
    if group.join("cgroup.kill").exists() && fs::write(group.join("cgroup.procs"), "0").is_ok() {
        return Some(group);
    }
    let _ = fs::remove_dir(&group);
    None
}

/// Moves this process back to the parent of the group.
pub fn leave(group: &Path) {
    if let Some(parent) = group.parent() {
        let _ = fs::write(parent.join("cgroup.procs"), "0");
    }
}

/// Kills everything in the group. A path that is not absolute was read from a file that was not
/// written whole, and names no group.
pub fn kill(group: &Path) {
    if group.is_absolute() {
        let _ = fs::write(group.join("cgroup.kill"), "1");
    }
}

/// Whether nothing is alive in it.
pub fn is_empty(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| text.trim().is_empty())
        || !group.exists()
}

/// Removes an empty group, if the path names one.
pub fn remove(group: &Path) {
    if group.is_absolute() {
        let _ = fs::remove_dir(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_names_no_group_changes_nothing() {
        let name = "cgroup.kill";
        assert!(!Path::new(name).exists(), "the test needs a clean folder");
        kill(Path::new(""));
        assert!(!Path::new(name).exists());
        let folder = tempfile::tempdir().expect("a folder");
        kill(folder.path());
        assert!(
            folder.path().join(name).exists(),
            "an absolute path is a group"
        );
    }
}
