//! `tow ls`: by whole names, and by what they begin with.

use super::{azure_home, home, tree, write};
use std::os::unix::fs::symlink;
use towline_testkit::Home;

fn shown(home: &Home, words: &[&str]) -> Vec<String> {
    let listed = home.tow(words).ok().json();
    let folders = listed["folders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| format!("{}/", name.as_str().unwrap()));
    let mut all: Vec<String> = folders
        .chain(
            listed["objects"]
                .as_array()
                .unwrap()
                .iter()
                .map(|object| object["name"].as_str().unwrap().to_owned()),
        )
        .collect();
    all.sort();
    all
}

#[test]
fn what_begins_with_a_path_is_listed_where_nothing_has_its_whole_name() {
    let home = azure_home("prefixes");
    for name in ["voc20/a", "voc20/deep/b", "voc2012/c", "voc.txt", "other"] {
        write(&home, &format!("d/{name}"), b"x");
    }
    for store in ["az", "nas"] {
        home.tow(["cp", "d", &format!("{store}:d")]).ok();
        let at = |path: &str| format!("{store}:d/{path}");
        assert_eq!(
            shown(&home, &["ls", &at("voc"), "--json"]),
            ["voc.txt", "voc20/", "voc2012/"],
            "{store}"
        );
        assert_eq!(
            shown(&home, &["ls", &at("voc20"), "--json"]),
            ["a", "deep/"],
            "{store}: a whole name is itself"
        );
        assert_eq!(
            shown(&home, &["ls", &at("voc20"), "--prefix", "--json"]),
            ["voc20/", "voc2012/"],
            "{store}"
        );
        assert_eq!(
            shown(&home, &["ls", &at("voc20"), "--prefix", "--deep", "--json"]),
            ["voc20/a", "voc20/deep/b", "voc2012/c"],
            "{store}"
        );
        let said = home.tow(["ls", &at("voc")]).ok();
        assert!(
            said.stderr.contains("nothing has the whole name") && said.stdout.contains("voc2012/"),
            "{said:?}"
        );
        let missing = home.tow(["ls", &at("coco")]);
        assert_eq!(
            (missing.code, missing.stdout.as_str()),
            (122, ""),
            "{missing:?}"
        );
    }
}

#[test]
fn a_link_that_leads_out_is_said_to_be_one() {
    let (home, there) = home();
    std::fs::create_dir_all(there.join("d")).unwrap();
    symlink("/etc/passwd", there.join("d/passwd")).unwrap();
    symlink("/etc", there.join("etc")).unwrap();
    for path in ["data/d/passwd", "data/etc/passwd", "data/etc"] {
        for verb in [vec!["ls"], vec!["down"], vec!["rm", "--yes"]] {
            let output = home.tow([&verb[..1], &[path], &verb[1..]].concat());
            assert!(
                [122, 123].contains(&output.code) && output.stdout.is_empty(),
                "{verb:?} {path}: {output:?}"
            );
            assert!(
                !output.stderr.contains("did you mean"),
                "{verb:?} {path}: {output:?}"
            );
        }
    }
    assert!(
        home.tow(["ls", "data/d/passwd"]).stderr.contains("link"),
        "{:?}",
        home.tow(["ls", "data/d/passwd"])
    );
    assert!(tree(&home.project()).is_empty());
}

#[test]
fn sizes_have_a_unit_and_each_way_its_word() {
    let (home, _) = home();
    write(&home, "data/a", b"xy");
    let up = home.tow(["up", "data/a"]).ok();
    assert!(up.stderr.contains("1 sent, 2B in"), "{up:?}");
    std::fs::remove_file(home.project().join("data/a")).unwrap();
    let plan = home.tow(["down", "data/a", "--dry-run"]).ok();
    assert!(
        plan.stdout.starts_with("receive") && plan.stderr.contains("1 would be received, 2B"),
        "{plan:?}"
    );
    let down = home.tow(["down", "data/a"]).ok();
    assert!(
        down.stderr.contains("1 received, 2B in") && !down.stderr.contains("sent"),
        "{down:?}"
    );
    let across = home.tow(["cp", "nas:alice/data/a", "nas:b"]).ok();
    assert!(across.stderr.contains("1 copied, 2B in"), "{across:?}");
    assert!(
        home.tow(["rm", "data/a", "--dry-run"])
            .ok()
            .stderr
            .contains("would remove 1 file(s), 2B")
    );
    assert!(home.tow(["ls", "nas:"]).ok().stdout.contains("2B"));
}
