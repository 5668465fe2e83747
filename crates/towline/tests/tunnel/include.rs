//! The one line in the user's own configuration of ssh, put in and taken out to the byte.

use crate::lab::{assert_says, home};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use towline_testkit::Home;

fn config(home: &Home) -> PathBuf {
    home.path("home/.ssh/config")
}

fn mode(path: &PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn line(home: &Home) -> String {
    home.tow(["tunnel", "include", "--yes", "--json"])
        .ok()
        .json()["line"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn every_other_byte_stays() {
    for text in [
        "Host x\n  User me\n",
        "",
        "no end of line",
        "\u{feff}Host x\r\n\tPort 1\r\n",
        "# only a word\n\n\n",
    ] {
        let home = home();
        fs::create_dir(home.path("home/.ssh")).unwrap();
        fs::write(config(&home), text).unwrap();
        fs::set_permissions(config(&home), fs::Permissions::from_mode(0o640)).unwrap();
        let line = line(&home);
        assert_eq!(
            fs::read_to_string(config(&home)).unwrap(),
            format!("{line}\n{text}")
        );
        let again = home.tow(["tunnel", "include", "--yes"]).ok();
        assert!(again.stdout.contains("already, in line 1"), "{again:?}");
        home.tow(["tunnel", "include", "--remove", "--yes"]).ok();
        assert_eq!(
            (
                fs::read_to_string(config(&home)).unwrap().as_str(),
                mode(&config(&home))
            ),
            (text, 0o640)
        );
        assert_eq!(
            home.tow(["tunnel", "include", "--remove", "--yes", "--json"])
                .ok()
                .json()["changed"],
            false
        );
        assert_eq!(
            fs::read_dir(home.path("home/.ssh")).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }
}

#[test]
fn a_file_of_our_making_goes_again() {
    let home = home();
    line(&home);
    assert_eq!(
        (mode(&home.path("home/.ssh")), mode(&config(&home))),
        (0o700, 0o600)
    );
    home.tow(["tunnel", "include", "--remove", "--yes"]).ok();
    assert!(!config(&home).exists());
    // What the user wrote into it meanwhile stays.
    line(&home);
    let text = fs::read_to_string(config(&home)).unwrap() + "Host mine\n";
    fs::write(config(&home), text).unwrap();
    home.tow(["tunnel", "include", "--remove", "--yes"]).ok();
    assert_eq!(fs::read_to_string(config(&home)).unwrap(), "Host mine\n");
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let home = home();
    fs::create_dir_all(home.path("home/.ssh")).unwrap();
    fs::create_dir_all(home.path("dotfiles")).unwrap();
    let behind = home.path("dotfiles/ssh_config");
    fs::write(&behind, "Host x\n").unwrap();
    fs::set_permissions(&behind, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("../../dotfiles/ssh_config", config(&home)).unwrap();
    let line = line(&home);
    assert_eq!(
        fs::read_to_string(&behind).unwrap(),
        format!("{line}\nHost x\n")
    );
    assert!(config(&home).is_symlink());
    home.tow(["tunnel", "include", "--remove", "--yes"]).ok();
    assert_eq!(
        (
            fs::read_to_string(&behind).unwrap().as_str(),
            config(&home).is_symlink()
        ),
        ("Host x\n", true)
    );
    fs::remove_file(&behind).unwrap();
    assert_says(
        &home.tow(["tunnel", "include", "--yes"]),
        123,
        &["a link to a file that does not exist"],
    );
}

#[test]
fn no_second_line_in_whatever_spelling_the_first_is() {
    let home = home();
    let ours = line(&home)
        .trim_start_matches("Include ")
        .trim_matches('"')
        .to_owned();
    for text in [
        format!("INCLUDE={ours}\nHost x\n"),
        format!("# mine\n  include other \"{ours}\"\n"),
        format!("Host *\nInclude {ours}\n"),
    ] {
        fs::write(config(&home), &text).unwrap();
        assert_eq!(
            home.tow(["tunnel", "include", "--yes", "--json"])
                .ok()
                .json()["changed"],
            false,
            "{text}"
        );
        assert_eq!(fs::read_to_string(config(&home)).unwrap(), text);
        assert_says(
            &home.tow(["tunnel", "include", "--remove", "--yes"]),
            123,
            &["a spelling that is not ours", "by hand"],
        );
    }
}

#[test]
fn nobody_is_changed_unasked_and_no_other_verb_touches_it() {
    let home = home();
    assert_says(
        &home.tow(["tunnel", "include"]),
        123,
        &["--yes carries it out"],
    );
    home.tow(["tunnel", "add", "box", "--to", "x", "--via", "y"])
        .ok();
    home.tow(["tunnel", "ls"]).ok();
    assert!(!home.path("home/.ssh").exists());
    line(&home);
    let added = home
        .tow(["tunnel", "add", "other", "--to", "x", "--via", "y"])
        .ok();
    assert!(
        added.stderr.contains("ssh tow-other") && !added.stderr.contains("include"),
        "{added:?}"
    );
}
