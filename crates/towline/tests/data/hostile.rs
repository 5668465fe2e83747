//! Names that would lead astray.

use super::{azure_home, home, tree, write};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use towline_testkit::real::Azurite;
use towline_testkit::real::http::request;

#[test]
fn names_that_cannot_travel_fail_by_name_and_the_rest_goes() {
    let (home, there) = home();
    write(&home, "data/good", b"g");
    fs::write(
        home.project()
            .join("data")
            .join(OsStr::from_bytes(b"bad\xff")),
        "b",
    )
    .unwrap();
    fs::write(home.project().join("data/new\nline"), "b").unwrap();
    let output = home.tow(["up", "data"]);
    assert_eq!(output.code, 123, "{output:?}");
    assert!(
        output.stderr.contains("not UTF-8") && output.stderr.contains("new\\nline"),
        "{output:?}"
    );
    assert_eq!(tree(&there).keys().collect::<Vec<_>>(), ["good"]);
}

#[test]
fn a_store_cannot_write_outside_the_target() {
    let home = azure_home("hostile");
    let azurite = Azurite::shared();
    let put = |name: &str| {
        let url = format!(
            "{}/hostile/{name}?{}",
            azurite.endpoint(),
            azurite.sas("rwdlac", 600)
        );
        let headers = [
            ("x-ms-version", "2022-11-02"),
            ("x-ms-blob-type", "BlockBlob"),
        ];
        assert_eq!(
            request("PUT", &url, &headers, b"evil").unwrap().status,
            201,
            "{name}"
        );
    };
    for name in [
        "d/good",
        "d/%2E%2E%2Fescaped",
        "d/a%0Ab",
        "d//double",
        "d/clash",
        "d/clash/below",
    ] {
        put(name);
    }
    let output = home.tow(["cp", "az:d", "out"]);
    assert_eq!(output.code, 123, "{output:?}");
    for (name, why) in [
        ("a\\nb", "control character"),
        ("d/../escaped", "`..` part"),
        ("d//double", "empty"),
    ] {
        assert!(
            output
                .stderr
                .lines()
                .any(|line| line.contains(name) && line.contains(why)),
            "{name}: {output:?}"
        );
    }
    assert!(!home.project().join("escaped").exists());
    let names = tree(&home.project().join("out"));
    assert!(names.contains_key("good"), "{names:?}");
    assert!(
        names.contains_key("clash") != names.contains_key("clash/below"),
        "{names:?}"
    );
    assert!(output.stderr.contains("in the way"), "{output:?}");
}

#[test]
fn links_in_the_target_are_not_followed() {
    let (home, _) = home();
    let outside = home.path("outside");
    fs::create_dir(&outside).unwrap();
    write(&home, "data/sub/x", b"x");
    write(&home, "data/y", b"y");
    home.tow(["up", "data"]).ok();
    fs::remove_dir_all(home.project().join("data")).unwrap();
    fs::create_dir(home.project().join("data")).unwrap();
    std::os::unix::fs::symlink(&outside, home.project().join("data/sub")).unwrap();
    std::os::unix::fs::symlink(outside.join("y"), home.project().join("data/y")).unwrap();
    let output = home.tow(["down", "data"]);
    assert_eq!(output.code, 123, "{output:?}");
    assert_eq!(tree(&outside).len(), 0, "nothing went through a link");
    assert_eq!(
        fs::read(home.project().join("data/y")).unwrap(),
        b"y",
        "a link to a file is replaced, not followed"
    );
}

#[test]
fn what_cannot_be_placed_holds_up_nothing_else() {
    let (home, there) = home();
    for name in ["a", "b", "c", "d"] {
        write(&home, &format!("data/{name}"), b"small, so it fails first");
        fs::create_dir_all(there.join(name).join("in the way")).unwrap();
        fs::write(
            home.project().join(format!("data/{name}\nline")),
            "no such name travels",
        )
        .unwrap();
    }
    write(&home, "data/large", &vec![7; 40 << 20]);
    write(&home, "data/last", b"small");
    let output = home.tow(["up", "data"]);
    assert_eq!(output.code, 123, "{output:?}");
    let arrived = tree(&there);
    assert_eq!(
        arrived.keys().collect::<Vec<_>>(),
        ["large", "last"],
        "{output:?}"
    );
    assert!(
        output.stderr.contains("d: a folder is in the way"),
        "{output:?}"
    );
}
