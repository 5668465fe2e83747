//! Which crate sees which: the arrows of ARCHITECTURE.md.

use super::sources::crates;
use std::collections::BTreeMap;
use std::fs;

/// Each crate, and those that it may see. A name that is missing here is a new crate: draw its
/// arrows.
const MAY_SEE: [(&str, &[&str]); 23] = [
    ("core", &[]),
    ("md5", &[]),
    ("host", &["core"]),
    ("wire", &["core"]),
    ("samples", &[]),
    ("page", &[]),
    (
        "api",
        &["client", "core", "engine", "host", "runner", "wire"],
    ),
    ("client", &["core", "host", "wire"]),
    ("import", &["core"]),
    ("mcp", &["api", "core", "wire"]),
    ("top", &["api", "core", "host", "wire"]),
    ("slurm", &["core"]),
    ("snapshot", &["core", "host"]),
    ("io", &["core", "host", "md5", "wire"]),
    ("backends", &["client", "core", "host", "slurm", "wire"]),
    (
        "engine",
        &["client", "core", "host", "import", "snapshot", "wire"],
    ),
    ("runner", &["core", "host", "slurm", "snapshot", "wire"]),
    (
        "workspace",
        &["client", "core", "host", "io", "snapshot", "wire"],
    ),
    (
        "server",
        &[
            "backends", "core", "engine", "host", "runner", "slurm", "snapshot", "wire",
        ],
    ),
    (
        "towline",
        &[
            "api",
            "backends",
            "client",
            "core",
            "engine",
            "host",
            "import",
            "io",
            "mcp",
            "page",
            "runner",
            "server",
            "snapshot",
            "top",
            "wire",
            "workspace",
        ],
    ),
    ("simulation", &["core", "engine", "server", "wire"]),
    ("testkit", &["core", "host", "runner", "wire"]),
    ("xtask", &["backends", "core", "wire"]),
];

#[test]
fn every_arrow_is_drawn() {
    let drawn: BTreeMap<&str, &[&str]> = MAY_SEE.into_iter().collect();
    let mut undrawn = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        let Some(may_see) = drawn.get(name.as_str()) else {
            undrawn.push(format!("the crate {name}"));
            continue;
        };
        let all = manifest
            .split_once("\n[dependencies]\n")
            .map_or("", |(_, rest)| rest);
        let own = all.split("\n[").next().unwrap_or_default();
        let seen = own.lines().filter_map(|line| line.strip_prefix("towline-"));
        let seen = seen.map(|rest| rest.split(['.', ' ']).next().unwrap());
        let more = seen.filter(|seen| !may_see.contains(seen));
        undrawn.extend(more.map(|seen| format!("{name} → {seen}")));
    }
    assert!(undrawn.is_empty(), "{undrawn:?}");
}

/// A dependency that no file names is unused. `md-5` is called `md5` in code.
#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        let all = manifest
            .split_once("\n[dependencies]\n")
            .map_or("", |(_, rest)| rest);
        let own = all.split("\n[").next().unwrap_or_default();
        let inside = format!("{name}/src/");
        let code: String = super::sources::product()
            .into_iter()
            .filter(|source| source.path.starts_with(&inside))
            .map(|source| source.text)
            .collect();
        for line in own.lines().filter(|line| !line.is_empty()) {
            let dependency = line.split(['.', ' ', '=']).next().unwrap();
            let in_code = if dependency == "md-5" {
                "md5".to_owned()
            } else {
                dependency.replace('-', "_")
            };
            let is_used = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            if !is_used.into_iter().any(|word| word == in_code) {
                unused.push(format!("{name}: {dependency}"));
            }
        }
    }
    assert!(unused.is_empty(), "{unused:?}");
}
