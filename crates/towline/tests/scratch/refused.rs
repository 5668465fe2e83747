//! What is refused, with a word on what to do, and with nothing changed.

use crate::{backups, home, ids, work};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use towline_testkit::ability::not_run;
use towline_testkit::{Home, Output};

/// Everything of a home that a refusal could have changed.
fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path.clone());
            }
            all.push(path.display().to_string());
        }
    }
    all.sort();
    all
}

#[track_caller]
fn refused(home: &Home, words: &[&str], code: i32, says: &[&str]) -> Output {
    // The first call makes the state folder.
    home.tow(["scratch", "ls"]);
    let before = ["config", "scratch", "backups", "state"].map(|name| files(&home.path(name)));
    let output = home.tow(["scratch"].into_iter().chain(words.iter().copied()));
    assert_eq!(output.code, code, "{output:?}");
    for text in says {
        assert!(
            output.stderr.contains(text),
            "`{text}` is not in {output:?}"
        );
    }
    let after = ["config", "scratch", "backups", "state"].map(|name| files(&home.path(name)));
    assert_eq!(before, after, "{words:?} changed something");
    output
}

#[test]
fn a_name_that_is_unknown_or_taken() {
    let home = home();
    refused(
        &home,
        &["backup"],
        122,
        &["there is no workspace yet", "tow scratch create"],
    );
    refused(
        &home,
        &["ls", "work"],
        122,
        &["no workspace is called `work`", "tow scratch create"],
    );
    work(&home);
    refused(
        &home,
        &["backup", "wrok"],
        122,
        &["no workspace is called `wrok`", "did you mean `work`"],
    );
    for verb in ["restore", "check", "prune", "auto", "ls"] {
        refused(&home, &[verb, "wrok"], 122, &["did you mean `work`"]);
    }
    refused(
        &home,
        &["create", "work", "--path", "/tmp/x"],
        123,
        &[
            "there is a workspace `work` already",
            "tow scratch restore work",
        ],
    );
    refused(
        &home,
        &["create", "a/../b", "--path", "/tmp/x"],
        120,
        &["no name for a workspace"],
    );
    refused(&home, &["create", "-x", "--path", "/tmp/x"], 120, &[]);
    let second = home.path("second");
    home.tow([
        "scratch",
        "create",
        "other",
        "--path",
        second.to_str().unwrap(),
    ])
    .ok();
    refused(
        &home,
        &["backup"],
        120,
        &["which workspace?", "other, work"],
    );
}

#[test]
fn a_place_that_is_none() {
    let home = home();
    refused(
        &home,
        &["create", "work", "--path", "scratch/work"],
        121,
        &["is no place for a workspace", "/scratch/$USER/work"],
    );
    refused(
        &home,
        &["create", "work", "--path", "/scratch/../etc"],
        121,
        &["is no place for a workspace"],
    );
    refused(
        &home,
        &["create", "work", "--path", "/"],
        121,
        &["holds more than a workspace"],
    );
    refused(
        &home,
        &["create", "work", "--path", "~"],
        121,
        &["holds more than a workspace"],
    );
    refused(
        &home,
        &["create", "work", "--path", "/x/$NO_SUCH_THING/work"],
        121,
        &["$NO_SUCH_THING is not set there"],
    );
    refused(
        &home,
        &["create", "work", "--path", "/x/${USER"],
        121,
        &["without its `}`"],
    );
    let folder = home.path("scratch/new");
    let path = folder.to_str().unwrap();
    let inside = folder.join("backups");
    refused(
        &home,
        &[
            "create",
            "work",
            "--path",
            path,
            "--to",
            inside.to_str().unwrap(),
        ],
        121,
        &["would lie in the workspace itself", "outside of it"],
    );
    refused(
        &home,
        &["create", "work", "--path", path, "--to", "somewhere"],
        121,
        &["neither a whole path nor DATASTORE:PATH"],
    );
    refused(
        &home,
        &["create", "work", "--path", path, "--to", "nostore:x"],
        121,
        &["nostore"],
    );
    refused(
        &home,
        &["create", "work", "--path", path, "--auto", "--every", "3s"],
        121,
        &["every 3s is too often", "10s is the least"],
    );
    refused(
        &home,
        &["create", "work", "--path", path, "--every", "1h"],
        120,
        &["--auto"],
    );
    assert!(!folder.exists(), "no folder was made");
}

#[test]
fn a_restore_that_would_overwrite_or_finds_nothing() {
    let home = home();
    let folder = work(&home);
    refused(
        &home,
        &["restore", "--backup", "latest"],
        123,
        &["is not empty; nothing was changed", "--path"],
    );
    // Who comes back to a node that has it still goes on working.
    let still = home.tow(["scratch", "restore"]).ok();
    assert!(
        still.stdout.contains("`work` is still there")
            && still.stdout.contains("nothing was changed"),
        "{still:?}"
    );
    assert!(home.tow(["scratch", "restore", "--json"]).ok().json()["backup"].is_null());
    assert_eq!(fs::read_to_string(folder.join("notes")).unwrap(), "first\n");
    let out = home.path("scratch/out");
    let path = out.to_str().unwrap();
    refused(
        &home,
        &["restore", "work", "--backup", "0123456789", "--path", path],
        122,
        &["no backup `0123456789`", "tow scratch ls"],
    );
    let id = &ids(&home, "work")[0];
    refused(
        &home,
        &["restore", "work", "--backup", &id[..3], "--path", path],
        122,
        &["tow scratch ls"],
    );
    refused(
        &home,
        &["restore", "work", "--only", "notes"],
        120,
        &["--path"],
    );
    fs::write(&out, "a file").unwrap();
    refused(&home, &["restore", "work", "--path", path], 123, &[path]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "a file");
}

#[test]
fn an_interval_that_is_too_short_or_none() {
    let home = home();
    work(&home);
    refused(
        &home,
        &["auto", "--every", "9s"],
        120,
        &["10s is the least"],
    );
    refused(&home, &["auto", "--every", "soon"], 120, &[]);
    refused(&home, &["auto", "--every", "1h", "--off"], 120, &[]);
    let off = home.tow(["scratch", "auto", "--off"]).ok();
    assert!(off.stdout.contains("were not on"), "{off:?}");
    home.configure("workspaces:\n  odd: {path: /scratch/odd, every: 1s}\n");
    refused(
        &home,
        &["ls"],
        121,
        &["workspace `odd`", "10s is the least"],
    );
}

/// A backup of nothing would push good ones out: an unmounted disk looks like an empty folder.
#[test]
fn a_workspace_that_is_empty_or_gone() {
    let home = home();
    let folder = work(&home);
    fs::remove_file(folder.join("notes")).unwrap();
    let empty = home.tow(["scratch", "backup"]);
    assert!(
        empty.code == 123 && empty.stderr.contains("tow scratch restore"),
        "{empty:?}"
    );
    fs::remove_dir(&folder).unwrap();
    let gone = home.tow(["scratch", "backup"]);
    assert!(
        gone.code == 123 && gone.stderr.contains("is not there"),
        "{gone:?}"
    );
    assert_eq!(backups(&home, "work").len(), 1, "the last good one stays");
    home.tow(["scratch", "restore"]).ok();
    assert_eq!(fs::read_to_string(folder.join("notes")).unwrap(), "first\n");
}

/// What cannot be read is said aloud; the rest is backed up all the same.
#[test]
fn a_file_that_may_not_be_read_is_named() {
    let home = home();
    let folder = work(&home);
    for (name, mode) in [("secret", 0o000), ("fine", 0o644)] {
        fs::write(folder.join(name), name).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let words = ["scratch", "backup", "work"];
    let output = if rustix::process::geteuid().is_root() {
        // Root reads everything: the same as somebody else.
        let give = |owner: &str| {
            std::process::Command::new("chown")
                .arg("-R")
                .arg(owner)
                .arg(home.path(""))
                .status()
                .is_ok_and(|status| status.success())
        };
        let is_given = give("65534:65534");
        let mut command = home.command(words);
        let mut plain = std::process::Command::new("setpriv");
        plain
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
            .arg(command.get_program())
            .args(command.get_args());
        plain
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(home.project());
        let ready = is_given
            && std::process::Command::new("setpriv")
                .arg("--version")
                .output()
                .is_ok();
        if !ready {
            return not_run("a file that may not be read: there is no `setpriv`");
        }
        let _ = command.stdin(std::process::Stdio::null());
        let output = Output::from(plain.output().unwrap());
        // Nobody reads the state of another, root neither.
        assert!(give("0:0"));
        output
    } else {
        home.tow(words)
    };
    assert!(
        output.code == 123
            && output
                .stdout
                .contains("NOT backed up, because it cannot be read: secret"),
        "{output:?}"
    );
    let row = &backups(&home, "work")[0];
    assert_eq!(
        (row["files"].as_u64(), row["doubtful"].as_u64()),
        (Some(2), Some(1)),
        "{row}"
    );
}
