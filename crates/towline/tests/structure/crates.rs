//! Which crate sees which: the arrows of ARCHITECTURE.md.

use super::sources::crates;
use std::collections::BTreeMap;
use std::fs;

/// Each crate, and those that it may see. A name that is missing here is a new crate: draw its
/// arrows.
const MAY_SEE: [(&str, &[&str]); 13] = [
    ("core", &[]),
    ("host", &["core"]),
    ("wire", &["core"]),
    ("samples", &[]),
    ("snapshot", &["core", "host"]),
    ("io", &["core", "host", "wire"]),
    ("backends", &["core", "host", "wire"]),
    ("engine", &["core", "host"]),
    ("runner", &["core", "host", "snapshot", "wire"]),
    (
        "server",
        &[
            "backends", "core", "engine", "host", "runner", "snapshot", "wire",
        ],
    ),
    (
        "towline",
        &[
            "backends", "core", "engine", "host", "io", "runner", "server", "snapshot", "wire",
        ],
    ),
    ("testkit", &["core", "host", "runner", "wire"]),
    ("xtask", &[]),
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
