//! Backups in a datastore: a folder's, and Microsoft's blob service, with credentials by reference.

use crate::tree::{Tree, differences, look};
use crate::{holding, home, ids, restored, status, until_within};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use towline_testkit::Home;
use towline_testkit::real::Azurite;

#[test]
fn backups_go_to_a_folder_datastore_and_come_back() {
    let home = home();
    fs::create_dir(home.path("nas")).unwrap();
    home.configure(&format!(
        "datastores:\n  nas: {{kind: folder, path: {}}}\n",
        home.path("nas").display()
    ));
    let mut tree = Tree::new(home.path("scratch/work"), 5, None);
    home.tow([
        "scratch",
        "create",
        "work",
        "--path",
        tree.root.to_str().unwrap(),
        "--to",
        "nas:alice/backups",
    ])
    .ok();
    let first = tree.look();
    tree.change();
    let made = home.tow(["scratch", "backup", "--json"]).ok().json();
    assert_eq!(made["place"], "nas:alice/backups/work");
    let all = ids(&home, "work");
    for (id, wanted) in [(&all[0], tree.look()), (&all[1], first)] {
        restored(&home, "work", id, &home.path("out"));
        assert_eq!(
            differences(&wanted, &look(&home.path("out"))),
            Vec::<String>::new()
        );
    }
    home.tow(["scratch", "check"]).ok();
    let climbing = home.tow([
        "scratch",
        "create",
        "other",
        "--path",
        home.path("o").to_str().unwrap(),
        "--to",
        "nas:../x",
    ]);
    assert!(
        climbing.code == 121 && climbing.stderr.contains("climbs out"),
        "{climbing:?}"
    );
}

fn azure(container: &str) -> Home {
    let azurite = Azurite::shared();
    azurite.make_container(container);
    let account = azurite.first();
    let home = home().with("AZ_KEY", &account.key);
    let store = format!(
        "{{kind: azure_blob, account: {}, container: {container}, endpoint: '{}', credential: \
            {{account_key: env:AZ_KEY}}}}",
        account.name, account.endpoint
    );
    home.configure(&format!("datastores:\n  az: {store}\n"));
    home
}

#[test]
fn backups_go_to_a_blob_store_by_themselves_after_the_variable_is_gone() {
    let mut home = azure("scratch");
    let key = Azurite::shared().first().key.clone();
    let mut tree = Tree::new(home.path("scratch/work"), 6, None);
    home.tow([
        "scratch",
        "create",
        "work",
        "--path",
        tree.root.to_str().unwrap(),
        "--to",
        "az:alice",
    ])
    .ok();
    restored(&home, "work", &ids(&home, "work")[0], &home.path("out"));
    assert_eq!(
        differences(&tree.look(), &look(&home.path("out"))),
        Vec::<String>::new()
    );
    home.tow(["scratch", "auto", "--every", "10s"]).ok();
    // From here on only the daemon's own file knows the key.
    home.unset("AZ_KEY");
    assert!(home.kill_daemon());
    let held = home.state().workspace("work", "secrets");
    assert_eq!(
        fs::metadata(&held).unwrap().permissions().mode() & 0o777,
        0o600
    );
    tree.change();
    let before = status(&home, "work")["status"]["stored"].clone();
    until_within(90, "a backup by itself", || {
        let row = status(&home, "work");
        assert_eq!(row["state"], "good", "{row}");
        (row["status"]["stored"] != before).then_some(())
    });
    for folder in ["state", "config", "home", "scratch"] {
        let wanted = if folder == "state" {
            vec![held.clone()]
        } else {
            Vec::new()
        };
        assert_eq!(holding(&home.path(folder), &key), wanted);
    }
    home.tow(["scratch", "auto", "--off"]).ok();
    assert!(
        !held.exists() && holding(&home.path("state"), &key).is_empty(),
        "the key is gone"
    );
    let without = home.tow(["scratch", "backup"]);
    assert!(
        without.code != 0 && without.stderr.contains("AZ_KEY") && !without.stderr.contains(&key),
        "{without:?}"
    );
    home.set("AZ_KEY", &key);
    restored(&home, "work", &ids(&home, "work")[0], &home.path("out"));
    assert_eq!(
        differences(&tree.look(), &look(&home.path("out"))),
        Vec::<String>::new()
    );
    home.tow(["scratch", "check"]).ok();
}
