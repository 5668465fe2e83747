//! `tow diff`: what differs, and nothing else.

use super::{ended, home, home_with_gpus};
use serde_json::{Value, json};

fn what(json: &Value) -> Vec<&str> {
    json["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| difference["what"].as_str().unwrap())
        .collect()
}

#[test]
fn the_same_twice_does_not_differ() {
    let home = home();
    let (one, two) = (ended(&home, &["echo", "x"]), ended(&home, &["echo", "x"]));
    let output = home.tow(["diff", &one, &two]).ok();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.trim()),
        ("", "they do not differ")
    );
    assert_eq!(
        home.tow(["diff", &one, &two, "--json"]).ok().json(),
        json!({"one": one, "other": two, "differences": [], "changes": []})
    );
}

#[test]
fn each_thing_that_differs() {
    let mut home = home_with_gpus().with("SHELL_VARIABLE", "a");
    let one = ended(
        &home,
        &[
            "-n", "1", "--env", "SEED=1", "--time", "1h", "sh", "-c", "exit 0",
        ],
    );
    home.set("SHELL_VARIABLE", "b");
    let two = ended(
        &home,
        &[
            "-n", "2", "--env", "SEED=2", "--time", "2h", "--tier", "basic", "sh", "-c", "exit 3",
        ],
    );
    let json = home.tow(["diff", &one, &two, "--json"]).ok().json();
    let found = what(&json);
    for key in [
        "command",
        "gpus",
        "state",
        "tier",
        "time",
        "variable SEED",
        "variable SHELL_VARIABLE",
    ] {
        assert!(found.contains(&key), "{key} is not in {found:?}");
    }
    for key in ["cluster", "nodes", "ranks", "variable HOME"] {
        assert!(!found.contains(&key), "{key} is in {found:?}");
    }
    let seed = json["differences"]
        .as_array()
        .unwrap()
        .iter()
        .find(|difference| difference["what"] == "variable SEED")
        .unwrap();
    assert_eq!((&seed["one"], &seed["other"]), (&json!("1"), &json!("2")));
    let text = home.tow(["diff", &one, &two]).ok().stdout;
    assert!(
        text.lines()
            .any(|line| line.starts_with("gpus") && line.contains('1') && line.contains('2')),
        "{text}"
    );
}

#[test]
fn runs_of_a_sweep_differ_by_their_values() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "lr=0.1,0.2", "echo", "${{lr}}"]);
    let json = home
        .tow([
            "diff",
            &format!("{sweep}-1"),
            &format!("{sweep}-2"),
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(what(&json), ["command", "value lr"]);
    assert_eq!(
        (
            &json["differences"][1]["one"],
            &json["differences"][1]["other"]
        ),
        (&json!("0.1"), &json!("0.2"))
    );
}

#[test]
fn scripts_that_differ_below_their_first_line() {
    let home = home();
    home.write("one.yaml", "script: |\n  echo same\n  echo one\n");
    home.write("two.yaml", "script: |\n  echo same\n  echo two\n");
    let (one, two) = (
        ended(&home, &["-f", "one.yaml"]),
        ended(&home, &["-f", "two.yaml"]),
    );
    let json = home.tow(["diff", &one, &two, "--json"]).ok().json();
    assert!(!what(&json).is_empty(), "what they run differs");
}

#[test]
fn the_commit_differs() {
    let home = home();
    home.write(".git/HEAD", &"a".repeat(40));
    let one = ended(&home, &["true"]);
    home.write(".git/HEAD", &"b".repeat(40));
    let two = ended(&home, &["true"]);
    assert_eq!(
        what(&home.tow(["diff", &one, &two, "--json"]).ok().json()),
        ["commit"]
    );
}

#[test]
fn long_ids_are_short_in_the_table_and_whole_for_programs() {
    let home = home().freezing();
    home.write("a.txt", "1");
    let one = ended(&home, &["true"]);
    home.write("a.txt", "2");
    let other = ended(&home, &["true"]);
    let table = home.tow(["diff", &one, &other]).ok().stdout;
    assert!(
        table.lines().any(|line| line.starts_with("snapshot")),
        "{table}"
    );
    let is_long =
        |word: &str| word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(!table.split_whitespace().any(is_long), "{table}");
    let json = home.tow(["diff", &one, &other, "--json"]).ok().json();
    let snapshot = json["differences"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["what"] == "snapshot")
        .unwrap()
        .clone();
    assert!(is_long(snapshot["one"].as_str().unwrap()), "{snapshot}");
}

#[test]
fn two_sweeps_differ_by_their_values_and_outcomes() {
    let home = home();
    let of = |values: &str| {
        let command = "exit $((${{a}} / 3))";
        ended(&home, &["--sweep", values, "sh", "-c", command])
    };
    let (one, other) = (of("a=1,2"), of("a=2,3,4"));
    let json = home.tow(["diff", &one, &other, "--json"]).ok().json();
    assert_eq!((&json["one"], &json["other"]), (&json!(one), &json!(other)));
    assert_eq!(
        json["differences"],
        json!([
            {"what": "runs", "one": "2", "other": "3"},
            {"what": "state", "one": "2 succeeded", "other": "2 failed, 1 succeeded"},
            {"what": "value a", "one": "1, 2", "other": "2, 3, 4"},
        ])
    );
    let run = home.tow(["diff", &one, &format!("{one}-2"), "--json"]).ok();
    assert_eq!(
        what(&run.json()),
        ["command", "ending", "runs", "state", "value a"]
    );
    let same = home.tow(["diff", "@-1", &one]).ok();
    assert_eq!(same.stderr.trim(), "they do not differ");
}
