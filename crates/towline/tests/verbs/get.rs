//! `tow get`: files from where a run was.

use super::{ended, home};
use std::fs;
use std::path::PathBuf;
use towline_testkit::Home;

fn all_files(folder: PathBuf) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    files.sort();
    files
}

fn with_results() -> (Home, String) {
    let home = home();
    let id = ended(&home, &["mkdir -p out/deep && echo last > out/last.pt && echo deep > out/deep/x && echo 'with space' > 'a b'"]);
    (home, id)
}

#[test]
fn files_and_folders_keep_their_paths() {
    let (home, id) = with_results();
    let output = home.tow(["get", &id, "out", "a b"]).ok();
    let to = home.project().join("assets").join(&id);
    assert_eq!(fs::read_to_string(to.join("out/last.pt")).unwrap(), "last\n");
    assert_eq!(fs::read_to_string(to.join("out/deep/x")).unwrap(), "deep\n");
    assert_eq!(fs::read_to_string(to.join("a b")).unwrap(), "with space\n");
    let mut printed: Vec<PathBuf> = output.stdout.lines().map(PathBuf::from).collect();
    printed.sort();
    assert_eq!(printed, all_files(to), "stdout is the list of files");
    assert_eq!(output.stderr, "");
}

#[test]
fn another_folder_and_json() {
    let (home, id) = with_results();
    let output = home.tow(["get", &id, "out/last.pt", "--to", "results", "--json"]).ok();
    let file = home.project().join("results/out/last.pt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "last\n");
    assert_eq!(output.json()["files"], serde_json::json!([file]));
    assert!(!home.project().join("assets").exists());
}

#[test]
fn from_another_folder() {
    let (home, id) = with_results();
    fs::create_dir(home.path("elsewhere")).unwrap();
    let output = home.command(["get", &id, "out/last.pt"]).current_dir(home.path("elsewhere")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(home.path("elsewhere").join("assets").join(&id).join("out/last.pt").exists());
}

#[test]
fn what_is_not_there_stops_all_of_it() {
    let (home, id) = with_results();
    let output = home.tow(["get", &id, "out", "not-there"]);
    assert_eq!((output.code, output.stdout.as_str()), (122, ""));
    assert!(output.stderr.contains("not-there"), "{}", output.stderr);
    assert!(!home.project().join("assets").exists(), "nothing was copied");
}

#[test]
fn only_below_the_run_s_folder() {
    let (home, id) = with_results();
    fs::write(home.path("outside"), "x").unwrap();
    for path in ["../outside", "/etc/hostname", "out/../../outside"] {
        let output = home.tow(["get", &id, path]);
        assert_eq!((output.code, output.stdout.as_str()), (123, ""), "{path}");
    }
    assert!(!home.project().join("assets").exists());
}

#[test]
fn the_whole_folder_does_not_hold_its_own_copy() {
    let (home, id) = with_results();
    home.tow(["query", &id]).ok();
    for _ in 0..2 {
        home.tow(["get", &id, "."]).ok();
    }
    let to = home.project().join("assets").join(&id);
    assert_eq!(fs::read_to_string(to.join("out/last.pt")).unwrap(), "last\n");
    let nested: Vec<PathBuf> = all_files(to.clone()).into_iter().filter(|file| file.strip_prefix(&to).unwrap().starts_with(format!("assets/{id}"))).collect();
    assert_eq!(nested, Vec::<PathBuf>::new(), "copied into itself");
}

#[test]
fn a_file_is_never_its_own_copy() {
    let (home, id) = with_results();
    let output = home.tow(["get", &id, "out/last.pt", "--to", "."]);
    assert_eq!((output.code, output.stdout.as_str()), (123, ""));
    assert_eq!(home.read("out/last.pt"), "last\n");
}
