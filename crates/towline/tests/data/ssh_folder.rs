//! The data verbs against a folder behind a real sshd.

use super::{noise, only, tree, write};
use std::fs;
use towline_testkit::real::Sshd;
use towline_testkit::{Home, until};

fn far(path: &str) -> (Home, Sshd) {
    let (home, sshd) = (Home::new(env!("CARGO_BIN_EXE_tow")), Sshd::start());
    let store = format!(
        "{{kind: ssh_folder, host: {}, ssh_config: {}, path: {path}}}",
        sshd.host(),
        sshd.config().display()
    );
    home.configure(&format!(
        "datastores:\n  far: {store}\nfolders:\n  data: {{datastore: far, path: alice/data}}\n"
    ));
    fs::create_dir_all(sshd.home().join("store")).unwrap();
    (home, sshd)
}

#[test]
fn a_tree_goes_there_and_comes_back_over_one_connection() {
    let (home, sshd) = far("~/store");
    for (name, bytes) in [
        ("data/a.txt", b"a".to_vec()),
        ("data/deep/er/b", vec![]),
        ("data/c d%#?+ü", noise(70_000, 1)),
        ("data/big", noise(20 << 20, 2)),
    ] {
        write(&home, name, &bytes);
    }
    let there = sshd.home().join("store/alice/data");
    let up = home.tow(["up", "data", "--json"]).ok().json();
    assert_eq!(only(&up)["sent"], 4);
    assert_eq!(tree(&home.project().join("data")), tree(&there));
    assert_eq!(
        only(&home.tow(["up", "data", "--json"]).ok().json())["sent"],
        0
    );
    fs::rename(home.project().join("data"), home.project().join("before")).unwrap();
    home.tow(["down", "data"]).ok();
    assert_eq!(
        tree(&home.project().join("before")),
        tree(&home.project().join("data"))
    );
    fs::create_dir_all(there.with_file_name("data2")).unwrap();
    fs::write(there.with_file_name("data2").join("stays"), "x").unwrap();
    home.tow(["rm", "data", "--yes"]).ok();
    assert!(!there.exists() && there.with_file_name("data2/stays").exists());
    assert_eq!(sshd.authentications(), 1, "one connection for all of it");
}

#[test]
fn a_cut_connection_loses_nothing_and_the_next_call_goes_on() {
    let (home, sshd) = far("~/store");
    write(&home, "data/big", &noise(200 << 20, 3));
    let mut up = home.spawn(["up", "data"]);
    // Parts lie beside what they become.
    let begun = || {
        fs::read_dir(sshd.home().join("store/alice/data"))
            .is_ok_and(|mut entries| entries.next().is_some())
    };
    until("the upload to be under way", || begun().then_some(()));
    sshd.kill_connections();
    let ended = until("the upload to end", || up.try_wait().unwrap());
    assert!(
        !sshd.home().join("store/alice/data/big").exists() || ended.success(),
        "nothing half is there under its name"
    );
    home.tow(["up", "data"]).ok();
    assert_eq!(
        tree(&home.project().join("data")),
        tree(&sshd.home().join("store/alice/data"))
    );
}

#[test]
fn what_cannot_be_is_said_plainly() {
    let (home, _sshd) = far("~/nowhere");
    write(&home, "data/x", b"one");
    let missing = home.tow(["up", "data"]);
    assert_eq!(missing.code, 125);
    assert!(
        missing.stderr.contains("there is no") && missing.stderr.contains("nowhere"),
        "{missing:?}"
    );
    let (home, sshd) = far("relative");
    write(&home, "data/x", b"one");
    let relative = home.tow(["up", "data"]);
    assert!(
        relative.code == 121 && relative.stderr.contains("must begin with"),
        "{relative:?}"
    );
    let store = format!(
        "{{kind: ssh_folder, host: {}, ssh_config: {}, path: ~/store}}",
        sshd.host(),
        sshd.strange_config().display()
    );
    home.configure(&format!(
        "datastores:\n  far: {store}\nfolders:\n  data: {{datastore: far}}\n"
    ));
    let stranger = home.tow(["ls", "data"]);
    assert_eq!(stranger.code, 123);
    assert!(
        stranger.stderr.contains("does not let you in"),
        "{stranger:?}"
    );
    let url = home.tow(["url", "data/x"]);
    assert_ne!(url.code, 0);
}
