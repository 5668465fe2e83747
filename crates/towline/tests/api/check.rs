//! A job file is checked before it is sent: each problem beside its field.

use super::client::Client;
use super::home;
use serde_json::{Value, json};

fn problems(checked: &Value) -> Vec<(String, u64, String)> {
    let one = |problem: &Value| {
        (
            problem["key"].as_str().unwrap_or("-").to_owned(),
            problem["line"].as_u64().unwrap_or(0),
            problem["message"].as_str().unwrap().to_owned(),
        )
    };
    checked["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(one)
        .collect()
}

#[test]
fn every_problem_is_told_at_once_with_its_key_and_line() {
    let home = home();
    let mut client = Client::new(&home);
    let input = "\
resources:
  nodes: 0
  time: soon
  gpus: 2
io:
  data: {datastore: nope, path: a}
environment:
  env: {1X: y}
retry: {max: 0}
launch: twice
command: train
";
    let checked = client.call("job.check", &json!({ "input": input }));
    let found = problems(&checked);
    let keys: Vec<(&str, u64)> = found.iter().map(|(key, line, _)| (&**key, *line)).collect();
    for expected in [
        ("resources.gpus", 4),
        ("resources.time", 3),
        ("launch", 10),
        ("environment.env.1X", 8),
        ("io.data.datastore", 6),
        ("resources.nodes", 2),
        ("retry.max", 9),
    ] {
        assert!(keys.contains(&expected), "{expected:?} in {found:?}");
    }
    assert_eq!(keys.len(), 7, "{found:?}");
    assert_eq!(checked["plan"], Value::Null);
    assert!(!home.state().history().exists(), "nothing was submitted");
}

#[test]
fn a_good_file_gives_the_plan_that_would_be_sent() {
    let home = home();
    let mut client = Client::new(&home);
    let input = "command: train --lr ${{lr}}\nsweep: {lr: [0.1, 0.01]}\n";
    let checked = client.call("job.check", &json!({ "input": input }));
    assert_eq!(checked["problems"], json!([]));
    assert_eq!(checked["plan"]["runs"].as_array().unwrap().len(), 2);
    assert_eq!(checked["plan"]["cluster"], "local");
    assert!(!home.state().history().exists(), "nothing was submitted");
}

#[test]
fn text_that_is_no_yaml_and_clusters_that_are_not_there_are_told() {
    let home = home();
    let mut client = Client::new(&home);
    let checked = client.call("job.check", &json!({ "input": "a: [1\nb: 2" }));
    let found = problems(&checked);
    assert_eq!((found.len(), &*found[0].0), (1, "-"), "{found:?}");
    assert!(found[0].1 > 0, "{found:?}");
    let checked = client.call(
        "job.check",
        &json!({ "input": "command: x\ncluster: lba\n" }),
    );
    let found = problems(&checked);
    assert_eq!((&*found[0].0, found[0].1), ("cluster", 2), "{found:?}");
    let checked = client.call(
        "job.check",
        &json!({ "input": "command: x\n", "cluster": "lba" }),
    );
    assert_eq!(problems(&checked)[0].0, "cluster");
}
