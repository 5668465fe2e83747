//! What cannot be read is not what is not there.

use super::{assert_matches, home};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use towline_testkit::ability::not_run;
use towline_testkit::{Home, Output};

/// Somebody without any rights.
const NOBODY: u32 = 65_534;

/// Verbs that read tell what is in the way, and so does `tow doctor`.
#[track_caller]
fn assert_unknown(tow: impl Fn(&[&str]) -> Output, words: &str) {
    for verb in [
        &["ps"][..],
        &["ps", "--json"],
        &["show", "@"],
        &["logs"],
        &["history"],
        &["wait"],
    ] {
        let output = tow(verb);
        assert!(matches!(output.code, 123 | 125), "{verb:?}: {output:?}");
        assert!(
            output.stderr.contains(words) && !output.stderr.contains("no run yet"),
            "{verb:?}: {}",
            output.stderr
        );
        assert_eq!(output.stdout, "", "{verb:?}");
    }
    let doctor = tow(&["doctor"]);
    assert_ne!(doctor.code, 0);
    assert_matches(&doctor.stdout, r"(?m)^state folder +wrong: ");
    assert_matches(&doctor.stdout, r"(?m)^history +wrong: ");
}

fn place(home: &Home) -> std::path::PathBuf {
    home.path("state/towline")
}

#[test]
fn a_link_that_leads_nowhere_is_not_an_empty_history() {
    let home = home();
    symlink("/mnt/tow-test-not-mounted/state", place(&home)).unwrap();
    assert_unknown(|words| home.tow(words), "/mnt/tow-test-not-mounted/state");
    assert!(
        fs::symlink_metadata(place(&home)).unwrap().is_symlink(),
        "nothing was made of it"
    );
}

#[test]
fn a_link_that_leads_in_circles_is_not_an_empty_history() {
    let home = home();
    symlink(place(&home), place(&home)).unwrap();
    assert_unknown(|words| home.tow(words), "state/towline");
    fs::remove_file(place(&home)).unwrap();
}

#[test]
fn a_file_in_place_of_the_folder_is_not_an_empty_history() {
    let home = home();
    fs::write(place(&home), "").unwrap();
    assert_unknown(|words| home.tow(words), "state/towline");
    fs::remove_file(place(&home)).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// As somebody who may not look into the folder; only root can be somebody else.
fn as_nobody(home: &Home, words: &[&str]) -> Output {
    home.command(words)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap()
        .into()
}

fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_folder_that_may_not_be_searched_is_not_an_empty_history() {
    if !is_root() {
        return not_run("folders of other users: only root can be somebody else");
    }
    let mut home = home();
    let binary = home.copy_binary("tow");
    open_to_all(&binary);
    home.use_binary(&binary);
    for folder in ["", "project", "home", "config"] {
        open_to_all(&home.path(folder));
    }
    fs::set_permissions(home.path("state"), Permissions::from_mode(0o000)).unwrap();
    assert_unknown(|words| as_nobody(&home, words), "Permission denied");
    open_to_all(&home.path("state"));
}

#[test]
fn another_user_s_folder_is_not_read_as_one_s_own() {
    if !is_root() {
        return not_run("folders of other users: only root can be somebody else");
    }
    let mut home = home();
    home.tow(["run", "true"]).ok();
    home.tow(["daemon", "stop"]).ok();
    let binary = home.copy_binary("tow");
    open_to_all(&binary);
    home.use_binary(&binary);
    for folder in ["", "project", "home", "config", "state", "state/towline"] {
        open_to_all(&home.path(folder));
    }
    let own = home.state();
    open_to_all(own.root());
    assert_unknown(|words| as_nobody(&home, words), "belongs to somebody else");
}

/// Whoever owns the folder could read all that is written there, whatever the modes of single
/// files.
#[test]
fn nothing_is_written_into_a_state_folder_of_another_user() {
    if !is_root() {
        return not_run("folders of other users: only root can give folders away");
    }
    let home = home();
    home.tow(["run", "true"]).ok();
    home.tow(["daemon", "stop"]).ok();
    let state = home.state();
    fs::remove_dir_all(state.root()).unwrap();
    fs::create_dir(state.root()).unwrap();
    fs::set_permissions(state.root(), Permissions::from_mode(0o777)).unwrap();
    std::os::unix::fs::chown(state.root(), Some(NOBODY), None).unwrap();
    for verb in [
        &["submit", "true"][..],
        &["run", "true"],
        &["tunnel", "open", "box"],
    ] {
        home.configure("tunnels: {box: {to: localhost, via: localhost}}\n");
        let refused = home.tow(verb);
        assert!(
            refused.code == 123 && refused.stderr.contains("belongs to somebody else"),
            "{verb:?}: {refused:?}"
        );
    }
    assert_eq!(
        fs::read_dir(state.root()).unwrap().count(),
        0,
        "nothing was made there"
    );
}

#[test]
fn a_configuration_that_cannot_be_read_is_not_none() {
    let home = home();
    symlink(
        "/mnt/tow-test-not-mounted/config.yaml",
        home.path("config/towline/config.yaml"),
    )
    .unwrap();
    let output = home.tow(["submit", "true"]);
    assert!(
        output.code == 121 && output.stderr.contains("config.yaml"),
        "{output:?}"
    );
    assert_eq!(
        home.tow(["ps", "--json"]).json()["runs"],
        serde_json::json!([]),
        "nothing was submitted"
    );
}

/// A daemon that cannot tell which runs are alive starts none of them again.
#[test]
fn a_daemon_that_cannot_see_the_runners_does_not_come_up() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "echo begun >> begun; until [ -e go ]; do sleep 0.01; done",
        ])
        .ok()
        .id();
    home.wait_for_state(&id, "running");
    assert!(home.kill_daemon());
    // A folder cannot be read as a journal.
    let odd = home.state().runner_journal("odd");
    fs::create_dir(&odd).unwrap();
    let output = home.tow(["submit", "true"]);
    assert!(
        matches!(output.code, 123 | 125) && output.stderr.contains("odd.journal"),
        "{output:?}"
    );
    fs::remove_dir(&odd).unwrap();
    home.write("go", "");
    home.wait_for_state(&id, "succeeded");
    assert_eq!(home.read("begun"), "begun\n", "once");
}

/// An ignore file that cannot be read would let travel what it leaves out.
#[test]
fn an_ignore_file_that_cannot_be_read_is_an_error() {
    let home = home().freezing();
    home.write("train.py", "");
    symlink(
        home.project().join(".gitignore"),
        home.project().join(".gitignore"),
    )
    .unwrap();
    let output = home.tow(["submit", "true"]);
    assert!(
        output.code != 0 && output.stderr.contains(".gitignore"),
        "{output:?}"
    );
}
