//! `tow rm`: whole names, and a yes.

use super::{home, tree, write};

#[test]
fn only_whole_names_go() {
    let (home, there) = home();
    for name in [
        "data/coco/a",
        "data/coco/b/c",
        "data/coco2017/a",
        "data/coco.txt",
        "data/other/coco/x",
    ] {
        write(&home, name, b"x");
    }
    home.tow(["up", "data"]).ok();
    let refused = home.tow(["rm", "data/coco"]);
    assert_eq!(refused.code, 123, "{refused:?}");
    assert!(refused.stderr.contains("2 file(s)"), "{refused:?}");
    let planned = home.tow(["rm", "data/coco", "--dry-run"]).ok();
    assert_eq!(planned.stdout, "alice/data/coco/a\nalice/data/coco/b/c\n");
    assert_eq!(tree(&there).len(), 5);
    let done = home
        .tow(["rm", "data/coco/", "--yes", "--json"])
        .ok()
        .json();
    assert_eq!((&done["files"], &done["done"]), (&2.into(), &true.into()));
    assert_eq!(
        tree(&there).keys().collect::<Vec<_>>(),
        ["coco.txt", "coco2017/a", "other/coco/x"]
    );
    assert!(
        home.project().join("data/coco/a").exists(),
        "what is here stays"
    );
    let missing = home.tow(["rm", "data/coc", "--yes"]);
    assert_eq!(missing.code, 122, "{missing:?}");
    assert_eq!(tree(&there).len(), 3);
}

#[test]
fn everything_is_refused() {
    let (home, there) = home();
    write(&home, "data/x", b"x");
    home.tow(["up", "data"]).ok();
    for words in [["rm", "nas:", "--yes"], ["rm", "nas:/", "--yes"]] {
        let output = home.tow(words);
        assert_eq!(output.code, 123, "{output:?}");
    }
    assert!(there.join("x").exists());
}

#[test]
fn one_missing_name_keeps_the_others() {
    let (home, there) = home();
    write(&home, "data/x", b"x");
    home.tow(["up", "data"]).ok();
    assert_eq!(home.tow(["rm", "data/x", "data/none", "--yes"]).code, 122);
    assert!(there.join("x").exists(), "all are found before any goes");
}
