//! A workspace on this machine, from its making to its return, as a user would.

use crate::tree::{Tree, differences, look};
use crate::{backups, home, ids, restored, status, work};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_workspace_is_made_backed_up_lost_and_brought_back() {
    let home = home();
    let folder = home.path("scratch/work");
    let made = home
        .tow([
            "scratch",
            "create",
            "work",
            "--path",
            folder.to_str().unwrap(),
            "--setup",
            "echo made > made; echo hello",
        ])
        .ok();
    assert!(
        made.stdout.contains("workspace `work`") && made.stderr.contains("hello"),
        "{made:?}"
    );
    assert_eq!(fs::read_to_string(folder.join("made")).unwrap(), "made\n");
    assert_eq!(
        backups(&home, "work").len(),
        1,
        "what set-up made is backed up at once"
    );

    fs::remove_dir_all(&folder).unwrap();
    let mut tree = Tree::new(folder.clone(), 3, None);
    // The only one needs no name.
    let first = home.tow(["scratch", "backup", "--json"]).ok().json();
    let before = tree.look();
    assert_eq!(
        (&first["unchanged"], &first["left_out"]),
        (&false.into(), &serde_json::json!([])),
        "{first}"
    );
    let again = home.tow(["scratch", "backup"]).ok();
    assert!(
        again.stdout.starts_with("nothing changed since backup"),
        "{again:?}"
    );
    tree.change();
    home.tow(["scratch", "backup"]).ok();
    assert_eq!(backups(&home, "work").len(), 3);

    let after = tree.look();
    fs::remove_dir_all(&folder).unwrap();
    let back = home.tow(["scratch", "restore", "--json"]).ok().json();
    assert_eq!(back["path"], folder.to_str().unwrap());
    assert_eq!(differences(&after, &look(&folder)), Vec::<String>::new());
    let id = first["backup"]["id"].as_str().unwrap();
    restored(&home, "work", id, &home.path("before"));
    assert_eq!(
        differences(&before, &look(&home.path("before"))),
        Vec::<String>::new()
    );
    assert!(
        !home.path("before/round").exists() && folder.join("round").exists(),
        "the newest is where the workspace was, the older one beside it"
    );
}

/// An environment beside the workspace, a line in the shell's file: nothing of it is in the
/// workspace.
#[test]
fn a_set_up_that_leaves_the_workspace_empty_is_no_failure() {
    let home = home();
    let folder = home.path("scratch/work");
    let made = home
        .tow([
            "scratch",
            "create",
            "work",
            "--path",
            folder.to_str().unwrap(),
            "--setup",
            "mkdir ../env",
            "--auto",
            "--every",
            "1h",
        ])
        .ok();
    assert!(
        home.path("scratch/env").is_dir()
            && made
                .stderr
                .contains("it is empty: `tow scratch backup work` once there is something in it"),
        "{made:?}"
    );
    assert_eq!(
        (
            status(&home, "work")["auto"].as_str(),
            backups(&home, "work").len()
        ),
        (Some("1h"), 0)
    );
    fs::write(folder.join("notes"), "first\n").unwrap();
    // The first automatic one may be at work.
    towline_testkit::until("a backup by hand", || {
        let output = home.tow(["scratch", "backup"]);
        let is_busy = output.stderr.contains("is being backed up");
        assert!(output.code == 0 || is_busy, "{output:?}");
        (output.code == 0).then_some(())
    });
    assert_eq!(backups(&home, "work").len(), 1);
}

#[test]
fn a_part_is_brought_back_beside_it() {
    let home = home();
    let folder = work(&home);
    fs::create_dir_all(folder.join("src/lib")).unwrap();
    fs::write(folder.join("src/lib/a.py"), "one").unwrap();
    fs::write(folder.join("srcs"), "another").unwrap();
    home.tow(["scratch", "backup"]).ok();
    fs::write(folder.join("src/lib/a.py"), "two").unwrap();
    let out = home.path("yesterday");
    home.tow([
        "scratch",
        "restore",
        "work",
        "--only",
        "src/",
        "--path",
        out.to_str().unwrap(),
    ])
    .ok();
    assert_eq!(fs::read_to_string(out.join("src/lib/a.py")).unwrap(), "one");
    assert!(
        !out.join("srcs").exists() && !out.join("notes").exists(),
        "a name that only begins so is another"
    );
    assert_eq!(
        fs::read_to_string(folder.join("src/lib/a.py")).unwrap(),
        "two",
        "the workspace is as it was"
    );
    let missing = home.tow([
        "scratch",
        "restore",
        "work",
        "--only",
        "nowhere",
        "--path",
        home.path("x").to_str().unwrap(),
    ]);
    assert!(
        missing.code == 122 && !home.path("x").exists(),
        "{missing:?}"
    );
}

#[test]
fn what_is_said_in_json_has_these_fields() {
    let home = home();
    let folder = work(&home);
    fs::write(folder.join("b"), "x").unwrap();
    let made = home
        .tow(["scratch", "backup", "work", "--json"])
        .ok()
        .json();
    for key in [
        "backup",
        "unchanged",
        "read",
        "left_out",
        "unreadable",
        "unsteady",
        "place",
        "same_disk",
    ] {
        assert!(made.get(key).is_some(), "{key} is not in {made}");
    }
    for key in [
        "id", "taken", "host", "folder", "files", "bytes", "stored", "doubtful", "readable",
    ] {
        assert!(made["backup"].get(key).is_some(), "{key} is not in {made}");
    }
    assert!(
        made["backup"]["taken"]
            .as_str()
            .is_some_and(|text| text.ends_with('Z')),
        "{made}"
    );
    assert_eq!(
        (
            made["backup"]["files"].as_u64(),
            made["backup"]["bytes"].as_u64()
        ),
        (Some(2), Some(7))
    );
    let listed = home.tow(["scratch", "ls", "work", "--json"]).ok().json();
    assert_eq!(
        (&listed["workspace"], &listed["backups"][0]),
        (&"work".into(), &made["backup"])
    );
    let row = status(&home, "work");
    for (key, value) in [
        ("state", "good".into()),
        ("auto", serde_json::Value::Null),
        ("path", folder.to_str().unwrap().into()),
    ] {
        assert_eq!(row[key], value, "{row}");
    }
    assert_eq!(row["status"]["backup"], made["backup"]);
    let checked = home.tow(["scratch", "check", "--json"]).ok().json();
    assert_eq!(
        (&checked["ok"], &checked["backups"], &checked["damage"]),
        (&true.into(), &2.into(), &serde_json::json!([]))
    );
    let pruned = home
        .tow([
            "scratch",
            "prune",
            "--keep-last",
            "1",
            "--keep-hourly",
            "0",
            "--keep-daily",
            "0",
            "--keep-weekly",
            "0",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(
        (
            &pruned["done"],
            pruned["dropped"].as_array().map(Vec::len),
            &pruned["kept"]
        ),
        (&false.into(), Some(1), &1.into()),
        "{pruned}"
    );
}

#[test]
fn a_prune_is_a_plan_first_and_keeps_what_it_says() {
    let home = home();
    let folder = work(&home);
    for number in 0..4 {
        fs::write(folder.join("notes"), format!("{number}\n")).unwrap();
        home.tow(["scratch", "backup"]).ok();
    }
    let all = ids(&home, "work");
    assert_eq!(all.len(), 5);
    let few = [
        "scratch",
        "prune",
        "work",
        "--keep-last",
        "2",
        "--keep-hourly",
        "0",
        "--keep-daily",
        "0",
        "--keep-weekly",
        "0",
    ];
    let planned = home.tow(few).ok();
    assert!(
        planned.stdout.starts_with("would drop 3 backups") && planned.stderr.contains("--yes"),
        "{planned:?}"
    );
    assert_eq!(ids(&home, "work"), all, "a plan drops nothing");
    home.tow(few.into_iter().chain(["--yes"])).ok();
    assert_eq!(ids(&home, "work"), all[..2]);
    home.tow(["scratch", "check"]).ok();
    restored(&home, "work", &all[1], &home.path("out"));
    assert_eq!(fs::read_to_string(home.path("out/notes")).unwrap(), "2\n");
    assert_eq!(home.tow(few).ok().stdout, "", "nothing more to drop");
}

#[test]
fn workspaces_of_the_configuration_count_and_say_what_is_left_out() {
    let home = home();
    let (folder, to) = (home.path("scratch/conf"), home.path("kept"));
    fs::create_dir_all(folder.join("build")).unwrap();
    fs::write(folder.join("a"), "a").unwrap();
    fs::write(folder.join("build/o"), "o").unwrap();
    home.configure(&format!(
        "workspaces:\n  conf: {{path: {}, to: {}, ignore: [build/], every: 20m, keep: {{last: 1, \
            hourly: 0, daily: 0, weekly: 0}}}}\n",
        folder.display(),
        to.display()
    ));
    let made = home
        .tow(["scratch", "backup", "conf", "--json"])
        .ok()
        .json();
    assert_eq!(made["backup"]["files"], 1, "{made}");
    assert!(
        made["left_out"][0].as_str().unwrap().starts_with("build"),
        "{made}"
    );
    fs::write(folder.join("a"), "b").unwrap();
    home.tow(["scratch", "backup"]).ok();
    let planned = home.tow(["scratch", "prune", "--json"]).ok().json();
    assert_eq!(
        planned["dropped"].as_array().unwrap().len(),
        1,
        "the policy of the configuration: {planned}"
    );
    let taken = home.tow(["scratch", "create", "conf", "--path", "/tmp/elsewhere"]);
    assert!(
        taken.code == 123 && taken.stderr.contains("in your configuration"),
        "{taken:?}"
    );
}

#[test]
fn what_one_user_keeps_no_other_may_read() {
    let home = home();
    let folder = work(&home);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    home.tow(["scratch", "backup"]).ok();
    let mode = |path: &str| fs::metadata(home.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (
            mode("backups/packs"),
            mode("backups/backups"),
            mode("config/towline/workspaces")
        ),
        (0o700, 0o700, 0o700)
    );
}
