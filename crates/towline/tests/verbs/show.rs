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

#[test]
fn a_sweep_is_one_record_and_a_table_of_its_runs() {
    let home = home();
    let words = [
        "--name",
        "fit-${{lr}}",
        "--experiment",
        "hoi",
        "--tag",
        "vitl",
        "--sweep",
        "lr=0.1,0.2",
        "--sweep",
        "(bs,acc)=(8,4),(16,2)",
        "sh",
        "-c",
        "[ ${{bs}} = 8 ] || exit 3",
    ];
    let sweep = ended(&home, &words);
    let shown = home.tow(["show", &sweep]).ok();
    let (record, table) = shown.stdout.split_once("\n\n").unwrap();
    for (name, value) in [
        ("sweep", sweep.as_str()),
        ("name", "fit-${{lr}}"),
        ("runs", "4: 2 failed, 2 succeeded"),
        ("values", "lr = 0.1, 0.2"),
        ("values", "(bs, acc) = (8, 4), (16, 2)"),
        ("experiment", "hoi"),
        ("tags", "vitl"),
    ] {
        let line = format!("{name:<11} {value}");
        assert!(
            record.lines().any(|known| known == line),
            "no {line:?} in\n{record}"
        );
    }
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len(), 4, "{table}");
    for (row, number) in rows.iter().zip(1..) {
        let begin = format!("{}-{number} ", super::short(&sweep));
        assert!(row.starts_with(&begin), "in their order: {table}");
    }
    let json = home.tow(["show", &sweep, "--json"]).ok().json();
    assert_eq!(
        (&json["id"], &json["states"], &json["name"]),
        (
            &json!(sweep),
            &json!({"failed": 2, "succeeded": 2}),
            &json!("fit-${{lr}}")
        )
    );
    assert_eq!(json["runs"].as_array().unwrap().len(), 4);
    json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(assert_is_run);
    assert_eq!(json["job"]["experiment"], "hoi");
    let moments: Vec<&str> = ["created", "started", "ended"]
        .iter()
        .map(|key| json[key].as_str().unwrap())
        .collect();
    assert!(moments.is_sorted(), "{moments:?}");
    assert!(json.get("events").is_none(), "only if asked for");
}

#[test]
fn events_of_a_sweep_say_whose_they_are() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1,2", "true"]);
    let shown = home.tow(["show", &sweep, "--events"]).ok();
    let short = super::short(&sweep);
    for number in 1..=2 {
        let of_run = format!("{short}-{number}  ");
        let lines = shown.stdout.lines();
        let own: Vec<&str> = lines.filter(|line| line.starts_with(&of_run)).collect();
        assert!(
            own.len() >= 3 && own[own.len() - 1].contains("ended"),
            "{}",
            shown.stdout
        );
    }
    let json = home.tow(["show", &sweep, "--events", "--json"]).ok().json();
    let runs: Vec<&str> = json["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["run"].as_str().unwrap())
        .collect();
    assert!(runs.is_sorted() && runs.len() >= 6, "{runs:?}");
}
