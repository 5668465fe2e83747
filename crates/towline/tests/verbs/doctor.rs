//! `tow doctor`: everything once, with what to do.

use super::{assert_matches, home};

#[test]
fn all_is_well() {
    let home = home();
    let output = home.tow(["doctor"]).ok();
    assert_eq!(output.stdout.lines().count(), 5, "{}", output.stdout);
    for line in output.stdout.lines() {
        assert_matches(line, r"\A\w[\w ]+ ok: \S");
    }
    let json = home.tow(["doctor", "--json"]).ok().json();
    assert_eq!(json["ok"], true);
    let checks = json["checks"].as_array().unwrap();
    assert!(
        checks.len() == 5
            && checks
                .iter()
                .all(|check| check["ok"] == true && check["name"].is_string()),
        "{json}"
    );
}

#[test]
fn what_is_wrong_is_named_and_the_rest_is_still_looked_at() {
    let home = home();
    home.configure("default_cluster: nowhere\n");
    let output = home.tow(["doctor"]);
    assert_ne!(output.code, 0);
    assert_matches(&output.stdout, r"(?m)^configuration +wrong: .*nowhere");
    assert_matches(&output.stdout, r"(?m)^daemon +ok: ");
    let json = home.tow(["doctor", "--json"]).json();
    assert_eq!(json["ok"], false);
    assert_eq!(
        json["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|check| check["ok"] == false)
            .count(),
        1,
        "{json}"
    );
}

#[test]
fn its_code_is_one_of_ours() {
    let home = home();
    home.configure("clusters: [\n");
    let output = home.tow(["doctor"]);
    assert_eq!(output.code, 121, "{output:?}");
    let mut home = super::home();
    std::fs::write(home.path("a-file"), "").unwrap();
    let file = home.path("a-file").display().to_string();
    home.set("XDG_STATE_HOME", &file);
    let output = home.tow(["doctor"]);
    assert!(matches!(output.code, 123 | 125), "{output:?}");
    assert_matches(&output.stdout, r"(?m)^state folder +wrong: .*a-file");
    assert!(
        output.stdout.contains("XDG_STATE_HOME"),
        "{}",
        output.stdout
    );
}
