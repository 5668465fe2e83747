//! Workspaces on scratch and their backups: as a user meets them, killed at any moment, damaged bit
//! by bit, by themselves over time, and on the nodes of a real cluster.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod auto;
mod datastore;
mod flips;
mod full;
mod killed;
mod local;
mod nodes;
mod refused;
mod seed;
mod stale;
mod tree;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use towline_testkit::Home;

pub(crate) fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}

pub(crate) use towline_testkit::until_within;

/// A workspace `work` on this machine with a file in it, its backups in the folder `backups`.
pub(crate) fn work(home: &Home) -> PathBuf {
    let folder = home.path("scratch/work");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("notes"), "first\n").unwrap();
    home.tow([
        "scratch",
        "create",
        "work",
        "--path",
        folder.to_str().unwrap(),
        "--to",
        home.path("backups").to_str().unwrap(),
    ])
    .ok();
    folder
}

/// The backups of a workspace, newest first.
#[track_caller]
pub(crate) fn backups(home: &Home, name: &str) -> Vec<Value> {
    // A workspace whose last backup failed is listed all the same.
    let listed = home.tow(["scratch", "ls", name, "--json"]);
    assert!([0, 123].contains(&listed.code), "{listed:?}");
    listed.json()["backups"].as_array().unwrap().clone()
}

#[track_caller]
pub(crate) fn ids(home: &Home, name: &str) -> Vec<String> {
    backups(home, name)
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
pub(crate) fn status(home: &Home, name: &str) -> Value {
    let listed = home.tow(["scratch", "ls", "--json"]).json();
    listed["workspaces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == name)
        .unwrap()
        .clone()
}

/// Brings a backup back into a new folder.
#[track_caller]
pub(crate) fn restored(home: &Home, name: &str, id: &str, target: &Path) {
    let _ = fs::remove_dir_all(target);
    home.tow([
        "scratch",
        "restore",
        name,
        "--backup",
        id,
        "--path",
        target.to_str().unwrap(),
    ])
    .ok();
}

/// Files below a folder that hold some bytes.
pub(crate) fn holding(folder: &Path, needle: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holding(&path, needle));
        } else if kind.is_file()
            && fs::read(&path).is_ok_and(|bytes| {
                bytes
                    .windows(needle.len())
                    .any(|window| window == needle.as_bytes())
            })
        {
            found.push(path);
        }
    }
    found
}
