//! A control group as a net: whatever is born inside stays inside, however it forks. Used where
//! this user may make one (version 2, delegated); elsewhere subreapers alone must do.

use std::fs;
use std::path::{Path, PathBuf};

/// Version 2 is mounted here: alone, or beside version 1.
const CGROUP_MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Makes the group `name` below our own and moves this process into it. `None` where that is not
/// ours to do.
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
    // Only a net that can be pulled is one.
    if group.join("cgroup.kill").exists() && fs::write(group.join("cgroup.procs"), "0").is_ok() {
        return Some(group);
    }
    let _ = fs::remove_dir(&group);
    None
}

/// Moves this process out of the group again, to where it was made.
pub fn leave(group: &Path) {
    if let Some(parent) = group.parent() {
        let _ = fs::write(parent.join("cgroup.procs"), "0");
    }
}

/// Kills everything in the group.
pub fn kill(group: &Path) {
    let _ = fs::write(group.join("cgroup.kill"), "1");
}

/// Whether nothing is alive in it.
pub fn is_empty(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| text.trim().is_empty())
        || !group.exists()
}

/// Removes an empty group.
pub fn remove(group: &Path) {
    let _ = fs::remove_dir(group);
}
