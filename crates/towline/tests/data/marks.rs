//! Names that stand for folders and hold nothing: those of a mount by blobfuse, of consoles, and
//! empty folders of a disk.

use super::{azure_home, home, tree, write};
use std::fs;
use towline_testkit::Home;
use towline_testkit::real::{Azurite, S3Server, http};

/// A blob that says "folder", as blobfuse and Hadoop write it.
fn put_marker(container: &str, name: &str, is_marked: bool) {
    let azurite = Azurite::shared();
    let mut headers = vec![
        ("x-ms-version", "2022-11-02"),
        ("x-ms-blob-type", "BlockBlob"),
    ];
    headers.extend(is_marked.then_some(("x-ms-meta-hdi_isfolder", "true")));
    let url = format!(
        "{}/{container}/{name}?{}",
        azurite.endpoint(),
        azurite.sas("rwdlac", 600)
    );
    assert_eq!(
        http::request("PUT", &url, &headers, b"").unwrap().status,
        201,
        "{name}"
    );
}

fn names(container: &str) -> Vec<String> {
    Azurite::shared()
        .client()
        .list(container, "")
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn what_a_mount_by_blobfuse_left_is_removed_with_its_folder() {
    let home = azure_home("fusemarks");
    for name in ["base/coco/a", "base/coco/train/b", "base/coco2017/c"] {
        write(&home, name, b"x");
    }
    home.tow(["cp", "base", "az:base"]).ok();
    for name in [
        "base",
        "base/coco",
        "base/coco/train",
        "base/coco2017",
        "base/lonely",
    ] {
        put_marker("fusemarks", name, true);
    }
    // Files come and go as if the markers were not there.
    home.tow(["down", "az:base/coco"]).ok();
    home.tow(["cp", "az:base", "back"]).ok();
    assert_eq!(
        tree(&home.project().join("back"))
            .keys()
            .collect::<Vec<_>>(),
        ["coco/a", "coco/train/b", "coco2017/c"]
    );
    let listed = home.tow(["ls", "az:base", "--json"]).ok().json();
    assert_eq!(
        listed["folders"],
        serde_json::json!(["coco", "coco2017", "lonely"])
    );
    let asked = home.tow(["rm", "az:base/coco"]);
    assert!(
        asked.code == 123
            && asked
                .stderr
                .contains("2 file(s), 2B, and 2 folder marker(s)"),
        "{asked:?}"
    );
    home.tow(["rm", "az:base/coco", "--yes"]).ok();
    assert_eq!(
        names("fusemarks"),
        ["base", "base/coco2017", "base/coco2017/c", "base/lonely"]
    );
    let gone = home.tow(["rm", "az:base/coco", "--yes"]);
    assert!(
        gone.code == 122 && !gone.stderr.contains("did you mean `base/coco`"),
        "{gone:?}"
    );
    // A folder of which only the marker is left is there, and can go.
    assert_eq!(
        home.tow(["ls", "az:base/lonely"])
            .ok()
            .stdout
            .lines()
            .count(),
        1,
        "the heading alone"
    );
    home.tow(["rm", "az:base/lonely", "--yes"]).ok();
    assert!(!names("fusemarks").contains(&"base/lonely".to_owned()));
}

/// Every verb on a tree with objects whose names end in `/`.
fn slashes(home: &Home, store: &str, names: &dyn Fn() -> Vec<String>) {
    home.tow(["cp", &format!("{store}:t"), "back"]).ok();
    assert_eq!(
        tree(&home.project().join("back"))
            .keys()
            .collect::<Vec<_>>(),
        ["a", "empty-file", "sub/b"],
        "{store}"
    );
    let deep = home
        .tow(["ls", &format!("{store}:t"), "--deep", "--json"])
        .ok()
        .json();
    assert_eq!(deep["objects"].as_array().unwrap().len(), 3, "{deep}");
    let level = home
        .tow(["ls", &format!("{store}:t"), "--json"])
        .ok()
        .json();
    assert_eq!(
        level["folders"],
        serde_json::json!(["none", "sub"]),
        "{store}"
    );
    home.tow(["cp", &format!("{store}:t"), &format!("{store}:copy")])
        .ok();
    home.tow(["rm", &format!("{store}:t"), "--yes"]).ok();
    let left: Vec<String> = names();
    assert!(
        left.iter()
            .all(|name| name.starts_with("copy/") || name == "other/"),
        "{store}: {left:?}"
    );
    assert!(
        left.contains(&"other/".to_owned()) && left.contains(&"copy/sub/b".to_owned()),
        "{store}: {left:?}"
    );
    fs::remove_dir_all(home.project().join("back")).unwrap();
}

#[test]
fn names_that_end_in_a_slash_do_no_harm() {
    let home = azure_home("slashmarks");
    for name in ["t/a", "t/sub/b"] {
        write(&home, name, b"x");
    }
    write(&home, "t/empty-file", b"");
    home.tow(["cp", "t", "az:t"]).ok();
    for name in ["t/", "t/sub/", "t/none/", "other/"] {
        put_marker("slashmarks", name, false);
    }
    slashes(&home, "az", &|| names("slashmarks"));

    let server = S3Server::start();
    let home = home
        .with("S3_ID", server.access_key())
        .with("S3_SECRET", server.secret_key());
    super::configure(
        &home,
        &format!(
            "  s3: {{kind: s3, bucket: {}, endpoint: '{}', credential: {{access_key_id: env:S3_ID, \
                secret_access_key: env:S3_SECRET}}}}\n",
            server.bucket(),
            server.endpoint()
        ),
    );
    home.tow(["cp", "t", "s3:t"]).ok();
    for name in ["t/", "t/sub/", "t/none/", "other/"] {
        assert_eq!(
            http::request(
                "PUT",
                &format!("{}/{}/{name}", server.endpoint(), server.bucket()),
                &[],
                b""
            )
            .unwrap()
            .status,
            200
        );
    }
    slashes(&home, "s3", &|| {
        server
            .client()
            .list(server.bucket(), "")
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    });
}

#[test]
fn an_empty_folder_of_a_disk_is_there_and_can_go() {
    let (home, there) = home();
    fs::create_dir_all(there.join("empty/inner")).unwrap();
    fs::create_dir_all(there.join("empty2")).unwrap();
    home.tow(["ls", "data/empty"]).ok();
    home.tow(["ls", "data/empty/inner"]).ok();
    home.tow(["rm", "data/empty", "--yes"]).ok();
    assert!(!there.join("empty").exists() && there.join("empty2").exists());
}

#[test]
fn a_name_with_a_backslash_is_named_and_stays() {
    let home = azure_home("backslash");
    write(&home, "d/good", b"x");
    write(&home, "d/back\\slash", b"y");
    let up = home.tow(["cp", "d", "az:d"]);
    assert!(
        up.code == 123 && up.stderr.contains("back\\slash") && up.stderr.contains("backslash"),
        "{up:?}"
    );
    assert_eq!(names("backslash"), ["d/good"]);
}
