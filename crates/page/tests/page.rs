//! The page in the program: small, the same whenever it is built, and the program is built without
//! Node.js too.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use towline_page::FILES;

/// What a browser fetches to show the page, compressed.
const MAX_PACKED_BYTES: usize = 250_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_real_page_is_here_and_small() {
    assert!(
        FILES.iter().any(|file| file.name == "assets/index.js"),
        "this program was built without its page: are Node.js and npm installed?"
    );
    let packed: usize = FILES.iter().map(|file| file.gzip.len()).sum();
    assert!(packed <= MAX_PACKED_BYTES, "{packed} bytes compressed");
}

#[test]
fn two_builds_give_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let builds: Vec<Vec<(String, Vec<u8>)>> = ["one", "other"]
        .iter()
        .map(|name| {
            let out = folder.path().join(name);
            let built = Command::new("node")
                .arg("node_modules/vite/bin/vite.js")
                .args(["build", "--logLevel", "warn"])
                .current_dir(root().join("ui"))
                .env("TOW_UI_OUT", &out)
                .env("NODE_ENV", "production")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&built.stderr);
            assert!(built.status.success(), "{said}");
            files(&out, "")
        })
        .collect();
    assert!(builds[0].len() >= 3, "a page, its script and its style");
    assert!(builds[0] == builds[1], "the bytes differ");
}

fn files(folder: &Path, below: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{below}{name}");
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(folder, &format!("{path}/")));
        } else {
            found.push((path, fs::read(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn without_node_one_plain_page_says_how_to_get_the_real_one() {
    let out = tempfile::tempdir().unwrap();
    let made = build_script(&out)
        .env("PATH", out.path().join("nothing-is-here"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stdout);
    assert!(made.status.success(), "{said}");
    assert!(
        said.contains("cargo::warning=tow is built without its page: Node.js is not installed"),
        "{said}"
    );
    let list = fs::read_to_string(out.path().join("files.rs")).unwrap();
    assert_eq!(list.matches("PageFile {").count(), 1, "{list}");
    assert!(list.contains("name: \"index.html\""), "{list}");
}

#[test]
fn a_page_that_was_made_elsewhere_is_taken_and_a_folder_without_one_is_not() {
    let (out, given) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let make = || {
        let mut script = build_script(&out);
        script.env("TOW_UI_DIST", given.path()).output().unwrap()
    };
    assert!(!make().status.success(), "there is no index.html");
    fs::write(given.path().join("index.html"), "<p>given").unwrap();
    assert!(make().status.success());
    let list = fs::read_to_string(out.path().join("files.rs")).unwrap();
    assert_eq!(list.matches("PageFile {").count(), 1, "{list}");
}

/// The build script of this crate, as cargo runs it, with a folder of ours for what it makes.
fn build_script(out: &tempfile::TempDir) -> Command {
    let mut script = Command::new(env!("TOW_PAGE_BUILD_SCRIPT"));
    script
        .env_clear()
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .env("OUT_DIR", out.path());
    script
}
