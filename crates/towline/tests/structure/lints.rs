//! Which crates may read the environment, start programs and read the clock.

use super::sources::crates;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The crates that own the environment and processes, and those that are tests, chores and builds.
const OWNERS: [&str; 6] = ["host", "io", "page", "runner", "testkit", "xtask"];

/// The settings, and the methods that are not to be used.
fn lines(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// A crate's own file stands in place of that of the tree, so it repeats what it does not change.
#[test]
fn only_owners_have_lints_of_their_own_and_only_fewer() {
    let tree = lines(&crates().join("../clippy.toml"));
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let file = folder.join("clippy.toml");
        assert_eq!(file.exists(), OWNERS.contains(&name.as_str()), "{name}");
        if !file.exists() {
            continue;
        }
        let own = lines(&file);
        let added: Vec<&String> = own.difference(&tree).collect();
        assert!(added.is_empty(), "{name}: {added:?}");
        let is_owned = |line: &&String| {
            line.contains("std::env::var") || line.contains("std::process::Command::new")
        };
        let lost: Vec<&String> = tree
            .difference(&own)
            .filter(|line| !is_owned(line))
            .collect();
        assert!(lost.is_empty(), "{name}: {lost:?}");
    }
}
