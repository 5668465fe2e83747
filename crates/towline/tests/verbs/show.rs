//! `tow show`: the record of a run.

use super::{assert_is_run, assert_matches, ended, home};
use serde_json::json;

#[test]
fn everything_that_is_known() {
    let home = home();
    home.write(
        "job.yaml",
        "name: full\nexperiment: e\ntags: [a, b]\nretry: \
        {when: [exit_code], max: 2}\ncommand: '[ $TOW_ATTEMPT = 2 ]'\n",
    );
    let id = ended(&home, &["-f", "job.yaml"]);
    let output = home.tow(["show", &id]).ok();
    assert_eq!(output.stderr, "");
    for (name, value) in [
        ("id", id.as_str()),
        ("name", "full"),
        ("state", "succeeded"),
        ("command", "[ $TOW_ATTEMPT = 2 ]"),
        ("experiment", "e"),
        ("tags", "a, b"),
        ("cluster", "local"),
    ] {
        assert_matches(
            &output.stdout,
            &format!(r"(?m)^{name} +{}", regex::escape(value)),
        );
    }
    assert_matches(
        &output.stdout,
        r"(?m)^attempt 1 .*left with code 1\nattempt 2 .*ended well$",
    );
    let log = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("log"))
        .unwrap()
        .trim();
    assert!(std::path::Path::new(log).exists(), "{log}");
}

#[test]
fn for_programs() {
    let home = home();
    let id = ended(
        &home,
        &["--name", "n", "--env", "A=b", "sh", "-c", "exit 3"],
    );
    let run = home.show(&id);
    assert_is_run(&run);
    assert_eq!(
        (
            &run["id"],
            &run["state"],
            &run["reason"],
            &run["exit_code"],
            &run["attempt"]
        ),
        (
            &json!(id),
            &json!("failed"),
            &json!("exit_code"),
            &json!(3),
            &json!(1)
        )
    );
    assert_eq!(run["job"]["command"], json!(["sh", "-c", "exit 3"]));
    assert_eq!(run["job"]["environment"]["env"], json!({"A": "b"}));
    assert_eq!(run["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &run["attempts"][0]["attempt"],
            &run["attempts"][0]["exit_code"]
        ),
        (&json!(1), &json!(3))
    );
    assert_eq!(run["logs"].as_array().unwrap().len(), 1);
    let events: Vec<&str> = run["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(events.last(), Some(&"ended"), "{events:?}");
    let moments: Vec<&str> = ["created", "started", "ended"]
        .iter()
        .map(|key| run[key].as_str().unwrap())
        .collect();
    assert!(moments.is_sorted(), "{moments:?}");
}

#[test]
fn events_one_a_line() {
    let home = home();
    let id = ended(&home, &["true"]);
    let output = home.tow(["show", &id, "--events"]).ok();
    assert!(output.stdout.lines().count() >= 3, "{}", output.stdout);
    for line in output.stdout.lines() {
        assert_matches(line, r"\A\d{4}-\d\d-\d\dT\S+Z +\S");
    }
}

#[test]
fn which_code_a_run_had() {
    let home = home();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    home.write(".git/HEAD", "ref: refs/heads/main\n");
    home.write(".git/refs/heads/main", &format!("{commit}\n"));
    let id = ended(&home, &["true"]);
    assert_eq!(home.show(&id)["commit"], commit);
    assert!(home.tow(["show", &id]).ok().stdout.contains(commit));
}

#[test]
fn people_see_their_own_time_and_programs_utc() {
    let home = home().with("TZ", "Etc/GMT-5");
    let id = ended(&home, &["true"]);
    let created = home.show(&id)["created"].as_str().unwrap().to_owned();
    assert_matches(&created, r"Z$");
    for verb in ["show", "query"] {
        assert_matches(
            &home.tow([verb, &id]).ok().stdout,
            r"(?m)^created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0500$",
        );
    }
    std::fs::create_dir_all(home.path("nas")).unwrap();
    std::fs::write(home.path("nas/file"), "x").unwrap();
    home.configure(&format!(
        "datastores:\n  nas: {{kind: folder, path: {}}}\n",
        home.path("nas").display()
    ));
    assert_matches(
        &home.tow(["ls", "nas:"]).ok().stdout,
        r"\d\d:\d\d:\d\d \+0500 +file",
    );
}
