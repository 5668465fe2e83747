//! `tow config`: what is configured and where it was written.

use super::{assert_matches, home};
use serde_json::{Value, json};

fn entry<'v>(values: &'v Value, key: &str) -> &'v Value {
    values["values"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["key"] == key)
        .unwrap_or_else(|| panic!("no {key}: {values}"))
}

#[test]
fn without_any_the_defaults() {
    let home = home();
    let output = home.tow(["config", "show"]).ok();
    assert_matches(&output.stdout, r"(?m)^default_cluster +local$");
    assert_eq!(
        entry(
            &home.tow(["config", "show", "--json"]).ok().json(),
            "default_cluster"
        ),
        &json!({"key": "default_cluster", "value": "local", "origin": "default"})
    );
}

#[test]
fn every_value_knows_its_origin() {
    let home = home().with("TOW_CLUSTERS__HERE__GPUS", "4");
    home.configure(
        "default_cluster: lab\nclusters:\n  lab: \
        {kind: slurm, host: login, partition: dev}\n  here: {kind: local, gpus: 1, cpus: 2}\n",
    );
    home.write(
        "towline.yaml",
        "default_cluster: here\nclusters:\n  lab: {partition: long}\n",
    );
    let json = home.tow(["config", "show", "--json"]).ok().json();
    for (key, value, origin) in [
        ("default_cluster", "here", "project/towline.yaml:1:"),
        ("clusters.lab.host", "login", "config.yaml:3:"),
        ("clusters.lab.partition", "long", "project/towline.yaml:3:"),
        ("clusters.here.gpus", "4", "TOW_CLUSTERS__HERE__GPUS"),
        ("clusters.here.cpus", "2", "config.yaml:4:"),
    ] {
        let entry = entry(&json, key);
        assert_eq!(entry["value"], value, "{key}");
        assert!(
            entry["origin"].as_str().unwrap().contains(origin),
            "{key}: {entry}"
        );
    }
    let with = home.tow(["config", "show", "--origin"]).ok().stdout;
    assert!(
        with.contains("ORIGIN") && with.contains("towline.yaml:1:"),
        "{with}"
    );
    assert!(
        !home
            .tow(["config", "show"])
            .ok()
            .stdout
            .contains("towline.yaml")
    );
    // What is shown is what is used; a flag goes over all.
    let plan = |words: &[&str]| {
        home.tow([&["submit", "--dry-run", "--json"], words, &["true"]].concat())
            .ok()
            .json()["cluster"]
            .clone()
    };
    assert_eq!(
        (plan(&[]), plan(&["-c", "local"])),
        (json!("here"), json!("local"))
    );
}

#[test]
fn the_project_s_file_counts_in_its_folders() {
    let home = home();
    home.write(
        "towline.yaml",
        "default_cluster: here\nclusters: {here: {kind: local}}\n",
    );
    home.write("deep/down/file", "");
    let output = home
        .command(["clusters", "--json"])
        .current_dir(home.project().join("deep/down"))
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        json["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|cluster| cluster["name"] == "here" && cluster["default"] == true),
        "{json}"
    );
}

#[test]
fn the_schema_knows_every_key_of_the_job_file() {
    let home = home();
    let schema = home.tow(["config", "schema"]).ok().json();
    for key in [
        "name",
        "experiment",
        "cluster",
        "resources",
        "launch",
        "io",
        "environment",
        "identity",
        "code",
        "copy",
        "retry",
        "hold_on_failure",
        "sweep",
        "tags",
        "command",
        "script",
    ] {
        assert!(
            schema["properties"].get(key).is_some(),
            "{key} is not in the schema"
        );
    }
    assert_eq!(
        schema["additionalProperties"], false,
        "an unknown key is an error"
    );
    assert_eq!(home.tow(["config", "schema", "--json"]).ok().json(), schema);
}

#[test]
fn local_needs_no_kind_in_a_variable_or_a_file() {
    let home = home().with("TOW_CLUSTERS__LOCAL__GPUS", "2");
    assert_eq!(
        home.tow(["nodes", "--json"]).ok().json()["nodes"][0]["gpus"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let home = super::home();
    home.configure("clusters: {local: {cpus: 3}}\n");
    assert_eq!(
        home.tow(["nodes", "--json"]).ok().json()["nodes"][0]["cpus"],
        3
    );
}

#[test]
fn a_variable_that_means_nothing_is_warned_about() {
    let home = home()
        .with("TOW_GRACE_MILIS", "5")
        .with("TOW_DAEMON_IDLE_SECONDS", "abc")
        .with("TOW_HISTORY_JOURNAL", "xyz");
    let said = home.tow(["config", "show"]).ok().stderr;
    assert!(
        said.contains("warning: TOW_GRACE_MILIS: ")
            && said.contains("did you mean `TOW_GRACE_MILLIS`?"),
        "{said}"
    );
    assert!(
        said.contains("warning: TOW_DAEMON_IDLE_SECONDS: `abc` is not a whole number"),
        "{said}"
    );
    assert!(
        said.contains("warning: TOW_HISTORY_JOURNAL: `xyz`"),
        "{said}"
    );
    assert_eq!(
        super::home().tow(["config", "show"]).ok().stderr,
        "",
        "what tests and runs set is known"
    );
}

#[test]
fn a_key_that_its_kind_has_no_use_for_is_told_with_its_place() {
    let home = home();
    home.configure(
        "clusters:\n  lab: {kind: slurm, host: login, workspace: w}\n  local: {kind: local, partition: dev}\n",
    );
    let said = home.tow(["config", "show"]).ok().stderr;
    for (place, key, kind) in [
        ("2:35", "workspace", "slurm"),
        ("3:24", "partition", "local"),
    ] {
        let line = said.lines().find(|line| line.contains(&format!("`{key}`")));
        let line = line.unwrap_or_else(|| panic!("{key}: {said}"));
        assert!(
            line.contains(place) && line.contains(&format!("of kind `{kind}`")),
            "{line}"
        );
    }
    assert_eq!(said.matches("means nothing").count(), 2, "{said}");
}
