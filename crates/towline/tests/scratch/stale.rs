//! Two copies of one workspace: the one that others have gone on from does not become the newest
//! backup unnoticed.

use super::{home, ids, work};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use towline_testkit::Home;

/// The same workspace on another machine: its backups lie where those of `first` do.
fn elsewhere(first: &Home) -> (Home, PathBuf) {
    let home = home();
    let folder = home.path("scratch/work");
    home.configure(&format!(
        "workspaces:\n  work:\n    path: {}\n    to: {}\n",
        folder.display(),
        first.path("backups").display()
    ));
    (home, folder)
}

fn change(folder: &Path, text: &str) {
    fs::write(folder.join("notes"), text).unwrap();
}

/// What a backup is refused with. Nothing was stored.
#[track_caller]
fn refused(home: &Home, says: &[&str]) {
    let before = ids(home, "work");
    let output = home.tow(["scratch", "backup"]);
    assert_eq!(output.code, 123, "{output:?}");
    for words in says.iter().chain(&["nothing was stored", "--anyway"]) {
        assert!(
            output.stderr.contains(words),
            "`{words}` is missing: {output:?}"
        );
    }
    assert_eq!(ids(home, "work"), before);
}

#[test]
fn an_old_copy_that_comes_back_is_not_taken_for_the_newest() {
    let here = home();
    let old = work(&here);
    let first = ids(&here, "work")[0].clone();
    let (there, new) = elsewhere(&here);
    there.tow(["scratch", "restore"]).ok();
    change(&new, "gone on\n");
    there.tow(["scratch", "backup"]).ok();
    let second = ids(&there, "work")[0].clone();
    assert_ne!(first, second);
    // The first machine is back, with what it had.
    change(&old, "old\n");
    refused(
        &here,
        &[
            &second,
            &format!("continues backup {first}"),
            new.to_str().unwrap(),
        ],
    );
    let shown = here.tow(["scratch", "restore"]);
    assert!(
        shown.code == 123
            && shown.stderr.contains("older than the newest backup")
            && shown.stderr.contains(&second),
        "{shown:?}"
    );
    // So are backups that nobody watches, and `ps` tells.
    here.tow(["scratch", "auto", "--every", "1m"]).ok();
    let told = super::until_within(60, "the automatic backup to fail", || {
        let told = here.tow(["ps"]);
        (told.stderr.contains("work") && told.stderr.contains(&second)).then_some(told)
    });
    assert!(told.stderr.contains("nothing was stored"), "{told:?}");
    assert_eq!(ids(&here, "work"), [second.clone(), first]);
    here.tow(["scratch", "auto", "--off"]).ok();
    // The other goes on as ever: also when nothing has changed, and where it is still there.
    there.tow(["scratch", "backup"]).ok();
    assert!(
        there
            .tow(["scratch", "restore"])
            .ok()
            .stdout
            .contains("still there")
    );
    // By wish it becomes the newest, and then it is the other that is old.
    here.tow(["scratch", "backup", "--anyway"]).ok();
    change(&old, "and on\n");
    here.tow(["scratch", "backup"]).ok();
    change(&new, "on and on\n");
    refused(&there, &[&format!("continues backup {second}")]);
}

#[test]
fn a_workspace_that_was_moved_by_hand_goes_on_and_the_one_left_behind_does_not() {
    let here = home();
    let old = work(&here);
    let (there, new) = elsewhere(&here);
    fs::create_dir_all(new.parent().unwrap()).unwrap();
    assert!(
        Command::new("cp")
            .arg("-a")
            .args([&old, &new])
            .status()
            .unwrap()
            .success()
    );
    change(&new, "moved\n");
    there.tow(["scratch", "backup"]).ok();
    change(&old, "left behind\n");
    refused(&here, &[]);
}

#[test]
fn another_folder_does_not_become_the_newest() {
    let here = home();
    work(&here);
    let (there, new) = elsewhere(&here);
    fs::create_dir_all(&new).unwrap();
    change(&new, "something else\n");
    refused(&there, &["it was not made from that one"]);
    // One that holds the very same is no other.
    change(&new, "first\n");
    let notes = here.path("scratch/work/notes");
    for (from, to) in [
        (notes.as_path(), new.join("notes")),
        (notes.parent().unwrap(), new.clone()),
    ] {
        assert!(
            Command::new("touch")
                .arg("-r")
                .args([from, &to])
                .status()
                .unwrap()
                .success()
        );
        fs::set_permissions(&to, fs::metadata(from).unwrap().permissions()).unwrap();
    }
    refused(&there, &[]);
    there.tow(["scratch", "backup", "--anyway"]).ok();
    assert_eq!(ids(&there, "work").len(), 1, "it has what the newest has");
    change(&new, "something else\n");
    there.tow(["scratch", "backup"]).ok();
}

#[test]
fn whoever_goes_back_to_an_older_backup_says_so_once() {
    let home = home();
    let folder = work(&home);
    let first = ids(&home, "work")[0].clone();
    change(&folder, "second\n");
    home.tow(["scratch", "backup"]).ok();
    let second = ids(&home, "work")[0].clone();
    fs::remove_dir_all(&folder).unwrap();
    let restored = home.tow(["scratch", "restore", "--backup", &first]).ok();
    assert!(
        restored.stderr.contains(&second) && restored.stderr.contains("--anyway"),
        "{restored:?}"
    );
    refused(&home, &[&format!("continues backup {first}")]);
    change(&folder, "third\n");
    home.tow(["scratch", "backup", "--anyway"]).ok();
    change(&folder, "fourth\n");
    home.tow(["scratch", "backup"]).ok();
    // Brought back beside it, a backup says nothing of the workspace.
    let beside = home.path("beside");
    let restored = home
        .tow([
            "scratch",
            "restore",
            "--backup",
            &first,
            "--path",
            beside.to_str().unwrap(),
        ])
        .ok();
    assert!(!restored.stderr.contains("--anyway"), "{restored:?}");
}
