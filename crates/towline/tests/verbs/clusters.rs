//! `tow clusters`: where runs can go.

use super::{assert_matches, home, home_with_gpus};
use serde_json::json;

#[test]
fn this_machine_without_any_configuration() {
    let home = home();
    let output = home.tow(["clusters"]).ok();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_matches(
        lines[0],
        r"\ANAME +KIND +DEFAULT +GPUS FREE +CPUS FREE +STATE\z",
    );
    assert_matches(lines[1], r"\Alocal +local +yes +\d+/\d+ +\d+/\d+ +ready\z");
    assert_eq!(output.stderr, "");
}

#[test]
fn what_is_free_now() {
    let home = home_with_gpus();
    let id = home
        .tow(["submit", "-n", "1", "--cpus", "3", "sleep", "300"])
        .ok()
        .id();
    home.wait_for_state(&id, "running");
    let cluster = home.tow(["clusters", "--json"]).ok().json()["clusters"][0].clone();
    assert_eq!(
        cluster,
        json!({"name": "local", "kind": "local", "default": true, "state": "ready", "cpus": 4, "cpus_free": 1, "gpus": 2, "gpus_free": 1})
    );
    assert_matches(
        &home.tow(["clusters"]).ok().stdout,
        r"(?m)^local +local +yes +1/2 +1/4 +ready$",
    );
}

#[test]
fn one_that_cannot_be_used_is_listed_with_the_reason() {
    let home = home();
    home.configure(
        "default_cluster: here\nclusters:\n  here: {kind: local}\n  far: \
        {kind: slurm, host: nowhere}\n",
    );
    let json = home.tow(["clusters", "--json"]).ok().json();
    let find = |name: &str| {
        json["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .find(|cluster| cluster["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&find("here")["default"], &find("local")["default"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(find("far")["kind"], "slurm");
    assert_ne!(find("far")["state"], "ready");
}
