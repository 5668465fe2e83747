//! `tow init`.

use super::home;

#[test]
fn it_takes_the_snapshot_that_the_next_submission_has() {
    let home = home();
    home.write("a.py", "a");
    let made = home.tow(["init", "--json"]).ok().json();
    assert_eq!(
        (&made["files"], &made["was_there"]),
        (&1.into(), &false.into())
    );
    let again = home.tow(["init", "--json"]).ok().json();
    assert_eq!(
        (&again["id"], &again["was_there"], &again["stored"]),
        (&made["id"], &true.into(), &0.into())
    );
    let run = home.tow(["submit", "true"]).ok().id();
    assert_eq!(home.show(&run)["snapshot"], made["id"]);
    home.tow(["wait", &run]).ok();
}

#[test]
fn it_explains_what_is_left_out_and_why() {
    let home = home();
    home.configure(
        "folders:\n  mydata: {datastore: nas, path: x}\ndatastores:\n  nas: \
        {kind: folder, path: /nowhere}\n",
    );
    home.write(".towignore", "*.log\n!keep.log\n");
    home.write(".gitignore", "*.py\n");
    home.write("a.py", "counts, because .towignore is read instead");
    home.write("b.log", "");
    home.write("keep.log", "");
    home.write("mydata/x", "");
    home.write("node_modules/x", "");
    home.write("assets/x", "");
    home.write("deep/__pycache__/x", "");
    home.write("deep/.towignore", "secret\n");
    home.write("deep/secret", "");
    let explained = home
        .tow(["init", "--explain", "--json", "--ignore", "/job"])
        .ok()
        .json();
    let why = |path: &str| {
        let rows = explained["left_out"].as_array().unwrap();
        rows.iter().find(|row| row["path"] == path).map(|row| {
            (
                row["why"].as_str().unwrap().to_owned(),
                row["linked"].as_bool().unwrap(),
            )
        })
    };
    assert_eq!(why("b.log"), Some(("`*.log` in .towignore".into(), true)));
    assert_eq!(why("keep.log"), None);
    assert_eq!(why("a.py"), None);
    assert_eq!(why("mydata/"), Some(("mapped to a datastore".into(), true)));
    assert_eq!(
        why("node_modules/"),
        Some(("built in: packages".into(), true))
    );
    assert_eq!(
        why("assets/"),
        Some(("built in: query results".into(), false))
    );
    assert_eq!(
        why("deep/__pycache__/"),
        Some(("built in: cache".into(), false))
    );
    assert_eq!(
        why("deep/secret"),
        Some(("`secret` in .towignore".into(), true))
    );
    assert_eq!(explained["files"], 5);
    // Explaining takes nothing.
    assert!(
        home.tow(["snapshot", "ls", "--json"]).ok().json()["snapshots"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let text = home.tow(["init", "--explain"]).ok().stdout;
    assert!(
        text.contains("LEFT OUT") && text.contains("built in: cache"),
        "{text}"
    );
}
