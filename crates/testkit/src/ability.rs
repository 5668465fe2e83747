//! The permissions of this user on this machine, found out by the test itself. A part that is not run is
//! reported, and one that could run is never skipped because the program failed to use it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Reports a part that was not run. Written past the test harness, which hides the output of
/// successful tests.
pub fn not_run(what: &str) {
    let _ = writeln!(std::io::stderr(), "not run: {what}");
}

/// Whether this program is in the path.
pub fn has_program(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// Whether control groups can be made and killed (version 2).
pub fn may_make_groups() -> bool {
    own("0::").is_some_and(|path| {
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            .iter()
            .any(|mount| can_make(&Path::new(mount).join(&path), "cgroup.kill"))
    })
}

/// Whether memory can be limited, by either version.
pub fn may_limit_memory() -> bool {
    let version_1 = own(":memory:").is_some_and(|path| {
        can_make(
            &Path::new("/sys/fs/cgroup/memory").join(path),
            "memory.limit_in_bytes",
        )
    });
    let version_2 = || {
        own("0::").is_some_and(|path| {
            Path::new("/sys/fs/cgroup")
                .join(path)
                .ancestors()
                .take(2)
                .any(|folder| can_make(folder, "memory.max"))
        })
    };
    version_1 || version_2()
}

/// The path of our own group, from the line of `/proc/self/cgroup` that contains `mark`.
fn own(mark: &str) -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text
        .lines()
        .find_map(|line| line.split_once(mark).map(|(_, path)| path))?;
    Some(path.trim_start_matches('/').into())
}

fn can_make(folder: &Path, file: &str) -> bool {
    let group = folder.join(format!("tow-test-{}-{file}", std::process::id()));
    let made = fs::create_dir(&group).is_ok() && group.join(file).exists();
    let _ = fs::remove_dir(&group);
    made
}
