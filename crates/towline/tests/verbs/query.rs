//! `tow query`: logs to `assets/RUN/`, the end of rank 0, the record.

use super::{assert_is_run, ended, gate, home, read_until};
use std::fs;

#[test]
fn logs_come_to_assets_and_the_record_is_shown() {
    let home = home();
    let id = ended(
        &home,
        &[
            "--launch",
            "2",
            "sh",
            "-c",
            "echo rank $RANK; exit $((RANK * 0))",
        ],
    );
    let output = home.tow(["query", &id]).ok();
    let folder = home.project().join("assets").join(&id);
    let files = [
        folder.join("attempt-1.rank-0.log"),
        folder.join("attempt-1.rank-1.log"),
    ];
    assert_eq!(fs::read_to_string(&files[0]).unwrap(), "rank 0\n");
    assert_eq!(fs::read_to_string(&files[1]).unwrap(), "rank 1\n");
    assert!(output.stdout.starts_with("rank 0\n"), "{}", output.stdout);
    assert!(
        !output.stdout.contains("rank 1\n"),
        "only rank 0: {}",
        output.stdout
    );
    for file in &files {
        assert!(
            output.stdout.contains(&file.display().to_string()),
            "{}",
            output.stdout
        );
    }
    assert!(
        output.stdout.contains(&id) && output.stdout.contains("succeeded"),
        "{}",
        output.stdout
    );
    assert_eq!(output.stderr, "");
}

#[test]
fn only_new_bytes_are_fetched() {
    let home = home();
    let mut child = home.spawn(["run", &format!("echo first; {}; echo second", gate("go"))]);
    read_until(&mut child, "first\n");
    home.tow(["q", "@"]).ok();
    let id = home.show("@")["id"].as_str().unwrap().to_owned();
    let copy = home
        .project()
        .join("assets")
        .join(&id)
        .join("attempt-1.rank-0.log");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "first\n");
    // A mark in what is there already: it would be gone if all were fetched again.
    fs::write(&copy, "FIRST\n").unwrap();
    home.tow(["q", "@"]).ok();
    assert_eq!(fs::read_to_string(&copy).unwrap(), "FIRST\n");
    home.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    home.tow(["q", "@"]).ok();
    assert_eq!(fs::read_to_string(&copy).unwrap(), "FIRST\nsecond\n");
}

#[test]
fn the_last_hundred_lines_unless_told() {
    let home = home();
    let id = ended(&home, &["seq 1 250"]);
    let shown = |words: &[&str]| {
        let output = home.tow([&["query", &id], words].concat()).ok();
        output
            .stdout
            .lines()
            .take_while(|line| line.parse::<u32>().is_ok())
            .map(|line| line.parse().unwrap())
            .collect::<Vec<u32>>()
    };
    assert_eq!(shown(&[]), (151..=250).collect::<Vec<_>>());
    assert_eq!(shown(&["--lines", "2"]), [249, 250]);
    assert_eq!(shown(&["--lines", "1000"]).len(), 250);
}

#[test]
fn every_attempt_is_fetched_and_another_folder_can_be_chosen() {
    let home = home();
    home.write(
        "job.yaml",
        "command: 'echo attempt $TOW_ATTEMPT; [ $TOW_ATTEMPT = 2 ]'\nretry: \
        {when: [exit_code], max: 2}\n",
    );
    let id = ended(&home, &["-f", "job.yaml"]);
    let output = home.tow(["query", &id, "--to", "elsewhere"]).ok();
    assert!(
        output.stdout.starts_with("attempt 2\n"),
        "the latest attempt: {}",
        output.stdout
    );
    for attempt in [1, 2] {
        assert_eq!(
            home.read(&format!("elsewhere/{id}/attempt-{attempt}.rank-0.log")),
            format!("attempt {attempt}\n")
        );
    }
    assert!(!home.project().join("assets").exists());
}

#[test]
fn for_programs() {
    let home = home();
    let id = ended(&home, &["echo", "hi"]);
    let output = home.tow(["query", &id, "--json"]).ok();
    let json = output.json();
    assert_is_run(&json);
    assert_eq!(json["id"], id.as_str());
    let logs = json["logs"].as_array().unwrap();
    assert_eq!(logs.len(), 1);
    assert_eq!(
        fs::read_to_string(logs[0].as_str().unwrap()).unwrap(),
        "hi\n"
    );
}

#[test]
fn without_a_run_it_is_the_list() {
    let home = home();
    let id = ended(&home, &["echo", "hi"]);
    assert_eq!(
        home.tow(["query", "--json"]).ok().json()["runs"][0]["id"],
        id.as_str()
    );
    assert!(!home.project().join("assets").exists());
}

#[test]
fn raw_bytes_stay_raw() {
    let home = home();
    let id = ended(&home, &["printf", r"a\r\000\377"]);
    let output = home.tow(["query", &id]).ok();
    assert_eq!(
        fs::read(
            home.project()
                .join("assets")
                .join(&id)
                .join("attempt-1.rank-0.log")
        )
        .unwrap(),
        b"a\r\0\xff"
    );
    assert!(
        output.raw.starts_with(b"a\r\0\xff\n"),
        "the record begins on a line of its own: {:?}",
        output.stdout
    );
}

#[test]
fn of_a_sweep_the_logs_of_every_run_come() {
    let home = home();
    let words = [
        "--sweep",
        "a=1-3",
        "sh",
        "-c",
        "echo ${{a}}; exit $((${{a}} / 3))",
    ];
    let sweep = ended(&home, &words);
    let output = home.tow(["query", &sweep]).ok();
    for number in 1..=3 {
        let run = format!("{sweep}-{number}");
        let file = home.project().join("assets").join(run);
        let file = file.join("attempt-1.rank-0.log");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{number}\n"));
        assert!(
            output.stdout.contains(&file.display().to_string()),
            "{}",
            output.stdout
        );
    }
    assert!(
        output
            .stdout
            .contains("status       1 failed, 2 succeeded\n")
            && output.stdout.contains(&format!("appID        {sweep}\n")),
        "{}",
        output.stdout
    );
    let json = home.tow(["query", &sweep, "--json"]).ok().json();
    assert_eq!(json["id"], sweep.as_str());
    assert_eq!(
        json["states"],
        serde_json::json!({"failed": 1, "succeeded": 2})
    );
    for run in json["runs"].as_array().unwrap() {
        assert_is_run(run);
        assert_eq!(run["logs"].as_array().unwrap().len(), 1);
    }
}
