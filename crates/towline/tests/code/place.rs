//! Where code is taken from, what is linked, and what stays in place.

use super::home;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn what_is_ignored_is_linked_from_its_place_and_caches_are_not() {
    let home = home();
    home.write(".gitignore", "data/\n*.o\n__pycache__/\n*.pyc\n");
    home.write("src/loose.pyc", "cache");
    home.write("data/set/x", "data");
    home.write("build/a.o", "object");
    home.write("build/a.c", "source");
    home.write(".venv/bin/python", "venv");
    home.write("src/__pycache__/m.pyc", "cache");
    home.write("src/m.py", "m");
    home.write(".hidden", "dot");
    fs::create_dir(home.path("elsewhere")).unwrap();
    fs::write(home.path("elsewhere/file"), "outside").unwrap();
    symlink("../elsewhere", home.project().join("up")).unwrap();
    let run = home
        .tow([
            "run",
            "sh",
            "-c",
            "cat data/set/x build/a.o build/a.c .venv/bin/python .hidden \
            up/file; ls src; test -L data && test ! -L build && echo good",
        ])
        .ok();
    assert_eq!(run.stdout, "dataobjectsourcevenvdotoutsidem.py\ngood\n");
}

#[test]
fn a_home_folder_is_not_walked_and_the_run_starts_there() {
    let home = home();
    // Reading it would fail the run.
    fs::create_dir(home.path("home/private")).unwrap();
    let folder = home.path("home");
    let output = home
        .command(["run", "pwd"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        folder.canonicalize().unwrap().display().to_string()
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("home folder")
            && said.contains("no code travels")
            && said.contains("starts in place"),
        "{said}"
    );
    assert!(!home.state().snapshots().exists());
    let root = home
        .command(["submit", "--dry-run", "true"])
        .current_dir("/")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&root.stdout).contains("no code travels"),
        "{root:?}"
    );
    let refused = home
        .command(["init"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(123));
}

#[test]
fn in_place_runs_in_the_folder_itself() {
    let home = home();
    home.tow(["run", "--in-place", "sh", "-c", "echo here > made"])
        .ok();
    assert_eq!(home.read("made"), "here\n");
    let again = home.tow(["resubmit", "@"]).ok().id();
    home.tow(["wait", &again]).ok();
    assert_eq!(home.show(&again)["snapshot"], serde_json::Value::Null);
}

#[test]
fn too_much_is_refused_and_the_largest_folders_are_named() {
    let home = home();
    home.write("src/a.py", "x");
    fs::create_dir(home.project().join("big")).unwrap();
    let file = fs::File::create(home.project().join("big/blob")).unwrap();
    file.set_len(3 << 30).unwrap();
    let refused = home.tow(["submit", "true"]);
    assert_eq!(refused.code, 123);
    assert!(
        refused.stderr.contains("big (1 files, 3G)"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains(".towignore") && refused.stderr.contains("--in-place"),
        "{}",
        refused.stderr
    );
    assert!(
        home.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    home.write(".towignore", "/big\n");
    home.tow(["run", "test", "-e", "big/blob"]).ok();
}

#[test]
fn the_code_root_is_found_upward_and_the_run_starts_where_it_was_asked_for() {
    let home = home();
    home.write("towline.yaml", "");
    home.write("lib/x", "x");
    home.write("sub/here", "y");
    let output = home
        .command(["run", "sh", "-c", "basename $PWD; cat here ../lib/x"])
        .current_dir(home.project().join("sub"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sub\nyx");
    home.write(
        "job.yaml",
        "code: {root: lib, ignore: ['*.tmp']}\ncommand: 'ls'\n",
    );
    home.write("lib/y.tmp", "");
    assert_eq!(
        home.tow(["run", "-f", "job.yaml"]).ok().stdout,
        "x\ny.tmp\n"
    );
}

#[test]
fn variables_that_name_the_folder_name_the_frozen_one() {
    let mut home = home();
    home.write("src/mod.py", "print('frozen')\n");
    let path = format!(
        "{}/src:/elsewhere",
        home.project().canonicalize().unwrap().display()
    );
    home.set("PYTHONPATH", &path);
    home.set("PWD", &home.project().display().to_string());
    let said = home
        .tow([
            "run",
            "python3",
            "-c",
            "import os, mod; print(os.environ['PYTHONPATH'], os.environ['PWD'] == os.getcwd())",
        ])
        .ok()
        .stdout;
    let (first, rest) = said.split_once('\n').unwrap();
    assert_eq!(first, "frozen");
    assert!(rest.contains("/code/src:/elsewhere True"), "{rest}");
}
