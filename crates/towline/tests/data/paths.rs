//! From what is typed to where it lies.

use super::{home, write};
use std::fs;

#[test]
fn the_same_path_works_from_below_the_root() {
    let (home, there) = home();
    home.write("towline.yaml", "{}\n");
    write(&home, "data/voc20/x", b"x");
    let output = home
        .command(["up", "voc20"])
        .current_dir(home.project().join("data"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(there.join("voc20/x").exists());
    let listed = home
        .command(["ls"])
        .current_dir(home.project().join("data/voc20"))
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&listed.stdout).contains('x'),
        "{listed:?}"
    );
}

#[test]
fn mistakes_have_their_codes_and_suggestions() {
    let (home, _) = home();
    write(&home, "data/voc20/x", b"x");
    write(&home, "other/x", b"x");
    home.tow(["up", "data"]).ok();
    for (words, code, part) in [
        (vec!["up", "data/voc2"], 122, "voc20"),
        (
            vec!["down", "data/voc21"],
            122,
            "did you mean `alice/data/voc20`",
        ),
        (vec!["ls", "data/vco20"], 122, "did you mean"),
        (
            vec!["up", "other"],
            122,
            "no folder of the configuration holds `other`",
        ),
        (vec!["ls", "nsa:x"], 122, "did you mean `nas`"),
        (vec!["ls", "data", "-c", "nowhere"], 122, "nowhere"),
        (vec!["up", "../outside"], 120, "outside the code root"),
        (vec!["ls", "nas:a/../../etc"], 120, "`..`"),
        (vec!["up"], 120, "PATH"),
        (vec!["url", "data/voc20"], 123, "is a folder"),
    ] {
        let output = home.tow(&words);
        assert_eq!(output.code, code, "{words:?}: {output:?}");
        assert!(output.stderr.contains(part), "{words:?}: {output:?}");
        assert_eq!(output.stdout, "", "{words:?}");
    }
}

#[test]
fn a_cluster_chooses_the_store_and_stores_copy_to_each_other() {
    let (home, there) = home();
    let eu = home.path("eu");
    fs::create_dir(&eu).unwrap();
    let text = fs::read_to_string(home.path("config/towline/config.yaml")).unwrap();
    let text = text.replace(
        "folders:",
        &format!("  euro: {{kind: folder, path: {}}}\nfolders:", eu.display()),
    );
    home.configure(&format!(
        "{text}clusters:\n  eu: {{kind: slurm, datastore: euro}}\n  odd: {{kind: slurm, folders: \
            {{data: {{datastore: euro, path: elsewhere}}}}}}\n"
    ));
    write(&home, "data/voc20/x", b"x");
    home.tow(["up", "data/voc20"]).ok();
    assert!(there.join("voc20/x").exists());
    fs::remove_dir_all(home.project().join("data")).unwrap();
    home.tow(["-c", "eu", "-f", "nas", "up", "data/voc20"]).ok();
    assert!(eu.join("alice/data/voc20/x").exists());
    home.tow(["u", "-c", "odd", "-f", "eu", "data/voc20"]).ok();
    assert!(eu.join("elsewhere/voc20/x").exists());
    home.tow(["d", "-c", "odd", "data/voc20"]).ok();
    assert!(home.project().join("data/voc20/x").exists());
}

#[test]
fn cp_goes_anywhere() {
    let (home, _) = home();
    let nas = home.path("nas");
    write(&home, "file", b"f");
    home.tow(["cp", "file", "nas:one/two"]).ok();
    assert!(nas.join("one/two").is_file());
    home.tow(["cp", "file", "nas:into/"]).ok();
    assert!(nas.join("into/file").is_file());
    home.tow(["cp", "nas:one", "nas:copy"]).ok();
    assert!(nas.join("copy/two").is_file());
    fs::create_dir(home.project().join("here")).unwrap();
    home.tow(["cp", "nas:one/two", "here"]).ok();
    assert!(home.project().join("here/two").is_file());
    home.tow(["cp", "nas:one", "here/one"]).ok();
    assert!(home.project().join("here/one/two").is_file());
    for target in ["nas:one", "nas:one/below"] {
        assert_eq!(home.tow(["cp", "nas:one", target]).code, 120, "{target}");
    }
}

#[test]
fn a_listing_is_a_table_and_a_value() {
    let (home, _) = home();
    write(&home, "data/sub/x", b"12345");
    write(&home, "data/y", b"1");
    home.tow(["up", "data"]).ok();
    let text = home.tow(["ls", "data"]).ok().stdout;
    assert!(
        text.starts_with("SIZE") && text.contains("sub/\n") && text.trim_end().ends_with('y'),
        "{text}"
    );
    let value = home.tow(["ls", "data", "--deep", "--json"]).ok().json();
    let names: Vec<&str> = value["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["sub/x", "y"]);
    assert_eq!(value["objects"][0]["size"], 5);
    let all = home.tow(["ls"]).ok().stdout;
    assert!(all.contains("data/") && all.contains("nas:"), "{all}");
}

#[test]
fn wrong_stores_are_configuration_errors_and_doctor_looks_at_each() {
    let (home, _) = home();
    super::configure(&home, "  bad: {kind: azur_blob, account: a}\n");
    let output = home.tow(["ls", "bad:x"]);
    assert_eq!(output.code, 121, "{output:?}");
    assert!(output.stderr.contains("azure_blob"), "{output:?}");
    let doctor = home.tow(["doctor"]);
    assert_eq!(doctor.code, 121, "{doctor:?}");
    assert!(
        doctor.stdout.contains("store nas      ok")
            && doctor.stdout.contains("store bad      wrong"),
        "{doctor:?}"
    );
}
