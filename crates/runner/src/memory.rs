//! Memory limits through cgroups, where this user may make them; elsewhere memory is only counted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A cgroup with a memory limit, for the processes of one node of one attempt.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    folder: PathBuf,
    home: PathBuf,
    oom_file: &'static str,
}

/// A hierarchy where limited groups can be made, and the names of its files.
struct Hierarchy {
    parent: PathBuf,
    home: PathBuf,
    limit_file: &'static str,
    oom_file: &'static str,
}

impl MemoryGroup {
    /// A new group limited to `bytes`, or `None` if this user cannot make groups.
    pub(crate) fn create(name: &str, bytes: u64) -> Option<Self> {
        hierarchies().into_iter().find_map(|hierarchy| {
            let folder = hierarchy.parent.join(format!("towline-{name}"));
            fs::create_dir(&folder).ok()?;
            let group = Self {
                folder,
                home: hierarchy.home,
                oom_file: hierarchy.oom_file,
            };
            let limited =
                fs::write(group.folder.join(hierarchy.limit_file), bytes.to_string()).is_ok();
            if !limited {
                group.remove();
            }
            limited.then_some(group)
        })
    }

    /// Runs `start` with this process inside the group, so that its children start inside.
    pub(crate) fn within<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        fs::write(self.folder.join("cgroup.procs"), "0")?;
        let result = start();
        fs::write(self.home.join("cgroup.procs"), "0")?;
        Ok(result)
    }

    /// Whether the kernel killed something inside for lack of memory.
    pub(crate) fn ran_out(&self) -> bool {
        let text = fs::read_to_string(self.folder.join(self.oom_file)).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.strip_prefix("oom_kill "))
            .any(|count| count.trim() != "0")
    }

    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Whether a run's `memory` is enforced on this machine, or only counted. It is tried, because no
/// file tells.
pub fn memory_is_enforced() -> bool {
    let tried = MemoryGroup::create(&format!("probe-{}", std::process::id()), 1 << 40);
    tried.inspect(MemoryGroup::remove).is_some()
}

/// How many processes the kernel has killed so far for lack of memory in the groups of this
/// process.
pub(crate) fn kernel_kills() -> u64 {
    let count = |folder: &Path, file: &str| -> u64 {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
            .sum()
    };
    // A cluster's limit is on the step or on the whole job, some groups above.
    let of = |hierarchy: &Hierarchy| {
        hierarchy
            .home
            .ancestors()
            .take(4)
            .map(|folder| count(folder, hierarchy.oom_file))
            .sum::<u64>()
    };
    hierarchies().first().map_or(0, of)
}

fn hierarchies() -> Vec<Hierarchy> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    own.lines().flat_map(hierarchy_of_line).collect()
}

/// A line is `0::/path` (version 2) or `4:memory:/path` (version 1).
fn hierarchy_of_line(line: &str) -> Vec<Hierarchy> {
    let mut parts = line.splitn(3, ':');
    let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
    else {
        return Vec::new();
    };
    let relative = path.trim_start_matches('/');
    if number == "0" && controllers.is_empty() {
        let home = Path::new("/sys/fs/cgroup").join(relative);
        // A group with processes cannot limit its children, so a sibling is used.
        let parents = home.ancestors().take(3).filter(|parent| has_memory(parent));
        return parents
            .map(|parent| Hierarchy {
                parent: parent.to_owned(),
                home: home.clone(),
                limit_file: "memory.max",
                oom_file: "memory.events",
            })
            .collect();
    }
    if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        let home = Path::new("/sys/fs/cgroup/memory").join(relative);
        return vec![Hierarchy {
            parent: home.clone(),
            home,
            limit_file: "memory.limit_in_bytes",
            oom_file: "memory.oom_control",
        }];
    }
    Vec::new()
}

fn has_memory(parent: &Path) -> bool {
    fs::read_to_string(parent.join("cgroup.subtree_control"))
        .is_ok_and(|text| text.split_whitespace().any(|word| word == "memory"))
}
