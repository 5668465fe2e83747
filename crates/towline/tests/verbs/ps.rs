//! `tow ps`, and `qf` `qq` `qr`.

use super::{
    RUN_KEYS, assert_is_run, assert_matches, busy_home, ended, gate, home, home_with_gpus, ids,
    read_until, runs, short,
};
use serde_json::json;
use std::process::Stdio;
use towline_testkit::until;

#[test]
fn without_a_run_it_says_how_to_begin_and_makes_nothing() {
    let home = home();
    let output = home.tow(["ps"]).ok();
    assert_eq!(output.stdout, "");
    assert!(output.stderr.contains("tow run"), "{}", output.stderr);
    let output = home.tow(["ps", "--json"]).ok();
    assert_eq!(
        (output.json(), output.stderr.as_str()),
        (json!({"runs": []}), "")
    );
    assert!(!home.path("state/towline").exists());
}

#[test]
fn newest_first_in_plain_columns() {
    let home = home();
    let first = ended(&home, &["echo", "one"]);
    let second = ended(&home, &["sh", "-c", "exit 3"]);
    let third = ended(&home, &["--name", "many\nlines", "echo", "a\nb"]);
    let output = home.tow(["ps"]).ok();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "a row is a line: {}", output.stdout);
    assert_matches(lines[0], r"\AID +NAME +STATE +AGE +TOOK +COMMAND\z");
    assert_matches(
        lines[1],
        &format!(
            r"\A{} +many lines +succeeded +\S+ +\S+ +echo 'a b'\z",
            short(&third)
        ),
    );
    assert_matches(
        lines[2],
        &format!(
            r"\A{} +sh +failed \(3\) +\S+ +\S+ +sh -c 'exit 3'\z",
            short(&second)
        ),
    );
    assert_matches(
        lines[3],
        &format!(
            r"\A{} +echo +succeeded +\S+ +\S+ +echo one\z",
            short(&first)
        ),
    );
    assert!(
        !output.stdout.contains('\x1b'),
        "no colour without a terminal"
    );
    let columns: Vec<usize> = ["many lines", "sh ", "echo "]
        .iter()
        .zip(&lines[1..])
        .map(|(name, line)| line.find(name).unwrap())
        .collect();
    assert_eq!(columns, [lines[0].find("NAME").unwrap(); 3], "aligned");
}

#[test]
fn the_hosts_of_a_run_in_json() {
    let home = home();
    let id = ended(&home, &["true"]);
    assert!(
        runs(&home, &[&id])[0].get("hosts").is_none(),
        "of this machine no name is stored"
    );
    // As a far cluster tells it.
    assert!(home.kill_daemon());
    let changed = rusqlite::Connection::open(home.state().history())
        .unwrap()
        .execute(
            "UPDATE runs SET state=json_set(state, '$.native', json(?2)) WHERE id=?1",
            [&id, r#"{"id": "7", "hosts": ["c1", "c2"]}"#],
        );
    assert_eq!(changed, Ok(1));
    assert_eq!(runs(&home, &[&id])[0]["hosts"], json!(["c1", "c2"]));
    assert_eq!(home.show(&id)["hosts"], json!(["c1", "c2"]));
}

#[test]
fn a_run_in_json() {
    let home = home_with_gpus();
    let good = ended(
        &home,
        &["-n", "1", "--experiment", "e", "--tag", "t", "true"],
    );
    let bad = ended(&home, &["sh", "-c", "exit 3"]);
    for words in [&["ps", "--json"][..], &["--json", "ps"]] {
        let output = home.tow(words).ok();
        assert_eq!(output.stderr, "");
        let listed = output.json()["runs"].as_array().unwrap().clone();
        assert_eq!(ids(&listed), [bad.as_str(), good.as_str()]);
        listed.iter().for_each(assert_is_run);
        let run = &listed[1];
        assert_eq!(
            (
                &run["name"],
                &run["cluster"],
                &run["state"],
                &run["reason"],
                &run["exit_code"],
                &run["attempt"]
            ),
            (
                &json!("true"),
                &json!("local"),
                &json!("succeeded"),
                &json!(null),
                &json!(0),
                &json!(1)
            )
        );
        assert_eq!(
            (&run["gpus"], &run["experiment"], &run["tags"]),
            (&json!(1), &json!("e"), &json!(["t"]))
        );
        for key in ["created", "started", "ended"] {
            assert_matches(
                run[key].as_str().unwrap(),
                r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\z",
            );
        }
        assert_eq!(
            (
                &listed[0]["state"],
                &listed[0]["reason"],
                &listed[0]["exit_code"]
            ),
            (&json!("failed"), &json!("exit_code"), &json!(3))
        );
    }
    let shown = home.show(&good);
    for key in RUN_KEYS {
        assert_eq!(
            shown[key],
            home.tow(["ps", "--json"]).json()["runs"][1][key],
            "`show` and `ps` agree on {key}"
        );
    }
}

#[test]
fn queued_and_running_runs_have_no_end() {
    let (home, holder) = busy_home();
    let waiting = home.tow(["submit", "true"]).ok().id();
    let listed = runs(&home, &[]);
    assert_eq!(ids(&listed), [waiting.as_str(), holder.as_str()]);
    assert_eq!(
        (
            &listed[0]["state"],
            &listed[0]["ended"],
            &listed[0]["exit_code"],
            &listed[0]["attempt"]
        ),
        (&json!("queued"), &json!(null), &json!(null), &json!(0))
    );
    assert_eq!(
        (
            &listed[1]["state"],
            &listed[1]["ended"],
            &listed[1]["attempt"]
        ),
        (&json!("running"), &json!(null), &json!(1))
    );
}

#[test]
fn filters_by_state_cluster_experiment_and_tag() {
    let (home, holder) = busy_home();
    let queued = home
        .tow([
            "submit",
            "--experiment",
            "e1",
            "--tag",
            "x",
            "--tag",
            "y",
            "true",
        ])
        .ok()
        .id();
    let other = home
        .tow(["submit", "--experiment", "e1", "--tag", "xy", "true"])
        .ok()
        .id();
    home.tow(["abort", &other]).ok();
    for (words, expected) in [
        (&["--state", "running"][..], vec![&holder]),
        (&["-s", "queued"], vec![&queued]),
        (&["--state", "queued,cancelled"], vec![&other, &queued]),
        (
            &["--state", "queued", "--state", "running"],
            vec![&queued, &holder],
        ),
        (&["--state", "active"], vec![&queued, &holder]),
        (&["--state", "ended"], vec![&other]),
        (&["--state", "Running"], vec![&holder]),
        (&["--state", "failed"], vec![]),
        (&["--experiment", "e1"], vec![&other, &queued]),
        (&["--experiment", "e"], vec![]),
        (&["--tag", "x"], vec![&queued]),
        (&["--tag", "xy"], vec![&other]),
        (&["--tag", "y", "--state", "running"], vec![]),
        (&["--cluster", "local"], vec![&other, &queued, &holder]),
        (&["--limit", "1"], vec![&other]),
        (&["-l", "2"], vec![&other, &queued]),
        (&["--all", "--limit", "1"], vec![&other, &queued, &holder]),
    ] {
        assert_eq!(ids(&runs(&home, words)), expected, "{words:?}");
    }
    let none = home.tow(["ps", "--state", "lost"]).ok();
    assert_eq!(
        (none.stdout.as_str(), none.stderr.trim()),
        ("", "no run fits")
    );
    // A name that is no cluster's is not one without runs.
    for words in [
        ["ps", "-c", "elsewhere"],
        ["ls", "-c", "elsewhere"],
        ["clusters", "-c", "elsewhere"],
    ] {
        let wrong = home.tow(words);
        assert!(
            wrong.code == 122 && wrong.stderr.contains("no cluster is called `elsewhere`"),
            "{words:?}: {wrong:?}"
        );
    }
}

#[test]
fn options_of_ps_may_stand_before_it() {
    let home = home();
    ended(&home, &["true"]);
    let bad = ended(&home, &["false"]);
    assert_eq!(
        home.tow(["--json", "--max", "1", "ps"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let output = home.tow(["--state", "failed", "--json", "ps"]).ok();
    assert_eq!(ids(output.json()["runs"].as_array().unwrap()), [bad]);
}

#[test]
fn more_than_fit_is_told_and_only_then() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1-51", "true"]);
    let output = home.tow(["ps", "--limit", "50"]).ok();
    assert_eq!(output.stdout.lines().count(), 51, "fifty and the head");
    assert!(
        output
            .stderr
            .contains("50 shown; more with --limit N or --all"),
        "{}",
        output.stderr
    );
    assert_eq!(
        home.tow(["query"]).ok().stdout.lines().count(),
        51,
        "as those who are used to it read it"
    );
    assert_eq!(home.tow(["ps", "--all"]).ok().stdout.lines().count(), 52);
    assert_eq!(
        home.tow(["ps", &sweep]).ok().stdout.lines().count(),
        52,
        "a sweep is listed whole"
    );
    assert_eq!(
        home.tow(["ps", "--limit", "51"]).ok().stderr,
        "",
        "all of them were shown"
    );
}

#[test]
fn old_names_of_the_lists() {
    let (home, holder) = busy_home();
    let queued = home.tow(["submit", "true"]).ok().id();
    for (verb, id) in [("qq", &queued), ("qr", &holder)] {
        assert_eq!(
            ids(home.tow([verb, "--json"]).ok().json()["runs"]
                .as_array()
                .unwrap()),
            [id]
        );
    }
    home.tow(["abort", "--wait", &holder]).ok();
    home.tow(["wait", &queued]).ok();
    let failed = ended(&home, &["false"]);
    assert_eq!(
        ids(home.tow(["qf", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()),
        [failed]
    );
    assert_eq!(home.tow(["q"]).ok().stdout.lines().count(), 4);
}

#[test]
fn a_cancel_not_yet_confirmed_shows_as_such() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            &format!(
                "trap 'touch asked; {}' TERM; touch ready; while :; do sleep 0.01; done",
                gate("never")
            ),
        ])
        .ok()
        .id();
    until("it to be ready", || {
        home.project().join("ready").exists().then_some(())
    });
    home.tow(["abort", &id]).ok();
    until("it to be asked", || {
        home.project().join("asked").exists().then_some(())
    });
    let run = home.show(&id);
    assert_eq!(
        (run["state"].as_str(), run["cancel_requested"].as_bool()),
        (Some("running"), Some(true))
    );
    assert!(home.tow(["ps"]).ok().stdout.contains("running, cancelling"));
    // The grace passes.
    assert_eq!(home.tow(["wait", &id]).code, 143);
    assert_eq!(home.state_of(&id), "cancelled");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let home = home();
    ended(&home, &["--sweep", "a=1-300", "--cpus", "1", "true"]);
    let mut child = home
        .command(["ps", "--all", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    read_until(&mut child, "{");
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), "")
    );
}

#[test]
fn wide_and_long_names_leave_the_columns_in_line() {
    let home = home();
    ended(&home, &["--name", "训练", "true"]);
    ended(&home, &["--name", &"long".repeat(20), "true"]);
    ended(&home, &["--name", "short", "true"]);
    let table = home.tow(["ps"]).ok().stdout;
    // Two columns for each of the two characters.
    let column = |line: &str| {
        line.find("succeeded").map(|at| {
            line[..at]
                .chars()
                .map(|c| if u32::from(c) > 0x2e80 { 2 } else { 1 })
                .sum::<usize>()
        })
    };
    let columns: Vec<_> = table.lines().skip(1).map(column).collect();
    assert_eq!(columns.len(), 3);
    assert!(
        columns
            .iter()
            .all(|at| *at == columns[0] && at.is_some_and(|at| at < 60)),
        "{table}"
    );
}

#[test]
fn a_sweep_is_one_row_with_its_counts() {
    let home = home();
    let alone = ended(&home, &["true"]);
    let sweep = home
        .tow([
            "submit",
            "--sweep",
            "a=1-60",
            "sh",
            "-c",
            "test ${{a}} -gt 3",
        ])
        .ok()
        .id();
    home.tow(["wait", &sweep]);
    let after = ended(&home, &["--name", "newest", "true"]);
    let shown = home.tow(["ps"]).ok();
    let rows: Vec<&str> = shown.stdout.lines().skip(1).collect();
    let short = |id: &str| id[id.len() - 5..].to_owned();
    assert_eq!(rows.len(), 3, "{}", shown.stdout);
    assert!(
        rows[0].starts_with(&short(&after)) && rows[2].starts_with(&short(&alone)),
        "in its place: {}",
        shown.stdout
    );
    assert!(
        rows[1].starts_with(&short(&sweep))
            && rows[1].contains("3 failed, 57 succeeded")
            && rows[1].contains("60 runs"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.contains("tow ps ID"), "{}", shown.stderr);
    // Programs read runs, and so does whoever asks for them.
    assert_eq!(
        home.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        50
    );
    assert_eq!(home.tow(["ps", &sweep]).ok().stdout.lines().count(), 61);
    assert_eq!(
        home.tow(["ps", "--state", "failed"])
            .ok()
            .stdout
            .lines()
            .nth(1)
            .map(|row| row.contains("3 failed")),
        Some(true)
    );

    let why = home.tow(["why", &sweep]).ok();
    assert!(
        why.stdout.contains("60 runs: 3 failed, 57 succeeded"),
        "{why:?}"
    );
    assert!(
        why.stdout.contains("3 failed: rank 0 left with code 1")
            && why.stdout.contains("next: tow why"),
        "{why:?}"
    );
    // The next step that is named is one.
    let again = why
        .stdout
        .trim_end()
        .rsplit_once("    those that failed once more: tow ")
        .unwrap()
        .1;
    let again = home.tow(again.split(' ').chain(["--json"])).ok().json();
    assert_eq!(
        again["resubmitted"][0]["runs"].as_array().unwrap().len(),
        3,
        "each that failed, once more: {again}"
    );
    let json = home.tow(["why", &sweep, "--json"]).ok().json();
    assert_eq!(
        (
            json["failures"][0]["runs"].as_array().map(Vec::len),
            &json["failures"][0]["reason"]
        ),
        (Some(3), &"exit_code".into()),
        "{json}"
    );
}

#[test]
fn a_sweep_is_counted_by_its_journals_while_the_daemon_hangs() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 3}\n");
    let command = format!("{}; exit 3", gate("go-${{a}}"));
    let sweep = home
        .tow(["submit", "--sweep", "a=1-4", "sh", "-c", &command])
        .ok()
        .id();
    for number in 1..=3 {
        home.wait_for_state(&format!("{sweep}-{number}"), "running");
    }
    let daemon = home.daemon().unwrap();
    towline_host::process::signal(daemon, rustix::process::Signal::STOP);
    home.write("go-2", "");
    let row = |words: &[&str]| {
        let shown = home.tow([&["ps"], words].concat()).ok().stdout;
        shown.lines().nth(1).unwrap_or_default().to_owned()
    };
    until("the second run to end by its journal", || {
        row(&[])
            .contains("1 failed, 2 running, 1 queued")
            .then_some(())
    });
    assert_matches(&row(&["--state", "running"]), r" 2 running +.* 2 runs ");
    home.write("go-1", "");
    home.write("go-3", "");
    until("the others to end by their journals", || {
        row(&[]).contains("3 failed, 1 queued").then_some(())
    });
    assert_eq!(row(&["--state", "running"]), "", "none is left of them");
    assert_matches(
        &row(&["--state", "queued,running"]),
        &format!(r"\A{}-4 +sh +queued ", short(&sweep)),
    );
    towline_host::process::signal(daemon, rustix::process::Signal::CONT);
}

#[test]
fn a_sweep_that_fits_by_one_run_is_that_run() {
    let home = home();
    let words = ["--sweep", "a=0-2", "sh", "-c", "exit $((${{a}} / 2))"];
    let sweep = ended(&home, &words);
    let shown = home.tow(["ps", "--state", "failed"]).ok();
    let row = shown.stdout.lines().nth(1).unwrap();
    assert_matches(row, &format!(r"\A{}-3 +sh +failed \(1\) ", short(&sweep)));
    let shown = home.tow(["ps", "--state", "succeeded"]).ok();
    let row = shown.stdout.lines().nth(1).unwrap();
    assert_matches(
        row,
        &format!(r"\A{} +sh +2 succeeded +.* 2 runs ", short(&sweep)),
    );
}

#[test]
fn more_sweeps_than_fit_are_cut_and_said() {
    let home = home();
    let mut sweeps = Vec::new();
    for _ in 0..51 {
        sweeps.push(home.tow(["submit", "--sweep", "a=1,2", "true"]).ok().id());
    }
    home.tow(["wait"]);
    let shown = home.tow(["ps"]).ok();
    let rows: Vec<&str> = shown.stdout.lines().skip(1).collect();
    assert_eq!(rows.len(), 50, "{}", shown.stdout);
    assert!(rows[0].starts_with(short(&sweeps[50])), "{}", shown.stdout);
    assert!(rows[49].starts_with(short(&sweeps[1])), "{}", shown.stdout);
    assert!(shown.stderr.contains("50 shown; more"), "{}", shown.stderr);
}
