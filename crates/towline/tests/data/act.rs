//! A project of ACT as its page lays it out: the page's data commands, in its order and spelling,
//! with `tow` for `a`, against Microsoft's blob service.

use super::{tree, write};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use towline_testkit::Home;
use towline_testkit::real::Azurite;

/// Two clusters with an account file each; both containers are in one account.
fn project(name: &str) -> Home {
    let azurite = Azurite::shared();
    let account = azurite.first();
    let home =
        Home::new(env!("CARGO_BIN_EXE_tow")).with("TOW_AZURE_BLOB_ENDPOINT", &account.endpoint);
    // The page wants the question mark; a token without it is the same.
    for (store, mode, mark) in [("vigeastblob", 0o644, "?"), ("we3blob", 0o600, "")] {
        let container = format!("{name}-{store}");
        azurite.make_container(&container);
        let sas = account.container_sas(&container, "rwdlac", 3_600);
        let text = format!(
            "account_name: {}\naccount_key: {}\nsas_token: {mark}{sas}\ncontainer_name: \
                {container}\n",
            account.name, account.key
        );
        let path = home.write(&format!("aux_data/configs/{store}_account.yaml"), &text);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    home.write("aux_data/aml/config.json", "{\"subscription_id\": \"xxxx\", \"resource_group\": \"xxxxx\", \"workspace_name\": \"xxxxx\"}\n");
    for (cluster, store) in [
        ("aml", "vigeastblob"),
        ("eu", "vigeastblob"),
        ("we3v32", "we3blob"),
    ] {
        let part = |key: &str, path: &str| {
            format!(
                "   {key}:\n       azure_blob_config_file: \
                    ./aux_data/configs/{store}_account.yaml\n       path: {path}\n"
            )
        };
        let folders = part("code_path", "path/to/code.zip")
            + &part("data_folder", "path/to/data")
            + &part("output_folder", "path/to/output");
        home.write(
            &format!("aux_data/aml/{cluster}.yaml"),
            &format!(
                "aml_config: \
                aux_data/aml/config.json\nconfig_param:\n{folders}compute_target: NC24RSV3\n"
            ),
        );
    }
    home.trust();
    home
}

#[test]
fn the_pages_data_commands_work_as_they_stand_there() {
    let home = project("act1");
    write(&home, "data/voc20/train.tsv", b"train");
    write(&home, "data/voc20/deep/test.tsv", b"test");
    let client = Azurite::shared().client();
    let there = |container: &str| -> Vec<String> {
        client
            .list(container, "")
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    assert!(!home.tow(["ls", "data/voc20"]).stdout.contains("train.tsv"));
    let up = home.tow(["u", "data/voc20"]).ok();
    assert_eq!(
        up.stderr.matches("can be read by others").count(),
        1,
        "{up:?}"
    );
    assert!(
        up.stderr
            .contains("secret-tool store --label=vigeastblob towline vigeastblob")
            && up.stderr.contains("chmod 600"),
        "{up:?}"
    );
    assert_eq!(
        there("act1-vigeastblob"),
        [
            "path/to/data/voc20/deep/test.tsv",
            "path/to/data/voc20/train.tsv"
        ]
    );
    assert!(
        home.tow(["ls", "data/voc20"])
            .ok()
            .stdout
            .contains("train.tsv")
    );
    // What another wrote comes down; the name alone says whether it is a file or a folder.
    for name in ["coco/a", "coco2017/b", "one.txt"] {
        let file = write(&home, "theirs", name.as_bytes());
        client
            .run([
                "put".as_ref(),
                "act1-vigeastblob".as_ref(),
                format!("path/to/data/{name}").as_ref(),
                file.as_os_str(),
            ])
            .json();
    }
    home.tow(["d", "data/coco"]).ok();
    home.tow(["d", "data/one.txt"]).ok();
    let here = tree(&home.project().join("data"));
    assert!(
        here["coco/a"] == b"coco/a"
            && here["one.txt"] == b"one.txt"
            && !here.contains_key("coco2017/b"),
        "{here:?}"
    );
    // "Be careful": without a person who says yes nothing goes.
    let asked = home.tow(["rm", "data/coco"]);
    assert!(
        asked.code == 123 && asked.stderr.contains("1 file(s)") && asked.stderr.contains("--yes"),
        "{asked:?}"
    );
    assert!(there("act1-vigeastblob").contains(&"path/to/data/coco/a".to_owned()));
    home.tow(["rm", "data/coco", "--yes"]).ok();
    let left = there("act1-vigeastblob");
    assert!(
        left.contains(&"path/to/data/coco2017/b".to_owned())
            && !left.contains(&"path/to/data/coco/a".to_owned()),
        "{left:?}"
    );
    // From one cluster's blob to the other's.
    write(&home, "data/voc20/only-there", b"x");
    home.tow(["-c", "we3v32", "u", "data/voc20"]).ok();
    fs::remove_dir_all(home.project().join("data")).unwrap();
    home.tow(["-c", "eu", "-f", "we3v32", "u", "data/voc20"])
        .ok();
    assert!(there("act1-vigeastblob").contains(&"path/to/data/voc20/only-there".to_owned()));
    // A file is known for one in every direction.
    let names = there("act1-we3blob");
    assert_eq!(
        names,
        [
            "path/to/data/voc20/deep/test.tsv",
            "path/to/data/voc20/only-there",
            "path/to/data/voc20/train.tsv"
        ]
    );
    write(&home, "data/single.txt", b"alone");
    home.tow(["-c", "we3v32", "u", "data/single.txt"]).ok();
    fs::remove_dir_all(home.project().join("data")).unwrap();
    home.tow(["-c", "eu", "-f", "we3v32", "u", "data/single.txt"])
        .ok();
    assert!(there("act1-vigeastblob").contains(&"path/to/data/single.txt".to_owned()));
    home.tow(["-c", "we3v32", "rm", "data/single.txt", "--yes"])
        .ok();
    assert_eq!(there("act1-we3blob"), names);
    let url = home.tow(["url", "data/one.txt"]);
    assert!(url.code == 0 && url.stdout.contains("sig="), "{url:?}");
}

#[test]
fn the_key_is_used_where_it_is_and_shows_nowhere() {
    let home = project("act2");
    let account = Azurite::shared().first();
    write(&home, "data/x", b"x");
    let mut said = String::new();
    for words in [
        &["u", "data/x"][..],
        &["ls", "data"],
        &["config", "show", "--origin"],
        &["config", "show", "--json"],
        &["clusters"],
        &["doctor"],
        &["import", "act", "aux_data/aml/aml.yaml", "--dry-run"],
    ] {
        let output = home.tow(words);
        assert!(
            !output.stdout.is_empty() || !output.stderr.is_empty(),
            "{words:?} says nothing"
        );
        said += &(output.stdout + &output.stderr);
    }
    home.tow([
        "import",
        "act",
        "aux_data/aml/aml.yaml",
        "aux_data/aml/eu.yaml",
    ])
    .ok();
    said += &home.read("towline.yaml");
    let sas = fs::read_to_string(
        home.project()
            .join("aux_data/configs/vigeastblob_account.yaml"),
    )
    .unwrap();
    let signature = sas
        .split("sig=")
        .nth(1)
        .unwrap()
        .split(['&', '\n'])
        .next()
        .unwrap();
    assert!(
        said.contains("vigeastblob") && said.contains(&account.name),
        "the store is spoken of: {said}"
    );
    assert!(
        !said.contains(&account.key) && !said.contains(signature),
        "{said}"
    );
    for (name, bytes) in tree(&home.path("state")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains(&account.key) && !text.contains(signature),
            "{name}"
        );
    }
    // With `sas_token` gone the key is taken.
    fs::remove_file(home.project().join("towline.yaml")).unwrap();
    let path = home
        .project()
        .join("aux_data/configs/vigeastblob_account.yaml");
    let without: String = sas
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("sas_token"))
        .collect();
    fs::write(&path, without).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    home.trust();
    let quiet = home.tow(["ls", "data/x"]).ok();
    assert!(!quiet.stderr.contains("warning"), "{quiet:?}");
}

#[test]
fn a_local_run_reads_through_the_account_file() {
    let home = project("act3");
    write(&home, "data/x", b"from the store");
    home.tow(["u", "data/x"]).ok();
    fs::remove_dir_all(home.project().join("data")).unwrap();
    home.write(
        "job.yaml",
        "cluster: local\nio: {in: {datastore: vigeastblob, path: path/to/data, \
        mode: read}}\nscript: cat ${{in}}/x\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &id]).ok();
    assert_eq!(home.tow(["logs", &id]).ok().stdout, "from the store");
    let again = home.tow(["resubmit", &id]).ok().id();
    home.tow(["wait", &again]).ok();
    let key = &Azurite::shared().first().key;
    let kept = tree(&home.path("state"));
    assert!(
        kept.values()
            .any(|bytes| String::from_utf8_lossy(bytes).contains("path/to/data")),
        "the search finds what is kept of the run"
    );
    for (name, bytes) in kept {
        assert!(
            !String::from_utf8_lossy(&bytes).contains(key.as_str()),
            "{name}"
        );
    }
}
