//! `tow history`: former submissions, as job files that submit the same.

use super::{assert_matches, ended, home, home_with_gpus, runs, short};
use serde_json::json;
use towline_testkit::Home;

/// The former submission as a job file, submitted again; the new id.
#[track_caller]
fn through_a_file(home: &Home, id: &str) -> String {
    let text = home.tow(["history", id]).ok().stdout;
    home.write("loaded.yaml", &text);
    let again = ended(home, &["-f", "loaded.yaml"]);
    assert_eq!(home.tow(["history", &again]).ok().stdout, text);
    again
}

#[test]
fn submissions_newest_first() {
    let home = home();
    let first = ended(&home, &["echo", "one"]);
    let sweep = ended(&home, &["--name", "s", "--sweep", "a=1-3", "true"]);
    let output = home.tow(["history"]).ok();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(
        lines.len(),
        3,
        "a sweep is one submission: {}",
        output.stdout
    );
    assert_matches(lines[0], r"\AID +NAME +RUNS ");
    assert_matches(lines[1], &format!(r"\A{} +s +3 ", short(&sweep)));
    assert_matches(
        lines[2],
        &format!(r"\A{} +echo +1 .*echo one\z", short(&first)),
    );
    let json = home.tow(["history", "--json", "--limit", "1"]).ok().json();
    let rows = json["submissions"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &rows[0]["id"], &rows[0]["runs"]),
        (1, &json!(sweep), &json!(3))
    );
}

#[test]
fn nothing_yet() {
    let home = home();
    let output = home.tow(["history"]).ok();
    assert_eq!(output.stdout, "");
    assert!(!output.stderr.is_empty());
    assert_eq!(
        home.tow(["history", "--json"]).ok().json(),
        json!({"submissions": []})
    );
}

#[test]
fn hostile_words_come_through_a_file() {
    let home = home();
    let words = [
        "a b",
        "",
        "it's",
        "\"q\"",
        "new\nline",
        "\n",
        "$HOME",
        "$${{x}}",
        "yes",
        "null",
        "~",
        "1e3",
        "0x10",
        "08",
        "- a",
        "# c",
        "a: b",
        "a:",
        " lead",
        "trail ",
        "\t",
        "é∀🚀",
        "{a}",
        "[b]",
        "&x",
        "*y",
        "!t",
        "%p",
        "@at",
        "`b",
        "|",
        ">",
        "---",
        "...",
        "?",
        "\\",
        "\\n",
        "\u{1}",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "'",
        "\"",
        ",",
        "true",
        ".inf",
        "<<",
        "=",
        "2001-01-01",
        "\r\n",
    ];
    let id = ended(&home, &[&["printf", "<%s>\n"][..], &words].concat());
    let before = home.tow(["logs", &id]).ok().raw;
    let expected: String = words
        .map(|word| format!("<{}>\n", word.replace("$${{", "${{")))
        .concat();
    assert_eq!(String::from_utf8(before.clone()).unwrap(), expected);
    let again = through_a_file(&home, &id);
    assert_eq!(home.tow(["logs", &again]).ok().raw, before);
}

#[test]
fn lines_and_scripts_come_through_a_file() {
    let home = home();
    let line = ended(&home, &["  echo \"a  b\" 'c'; echo $((1+1))  # end "]);
    let again = through_a_file(&home, &line);
    assert_eq!(home.tow(["logs", &again]).ok().stdout, "a  b c\n2\n");
    for script in [
        "#!/bin/cat\n  indented\n\n\ttab: x # y\ntrailing  \n\n",
        "#!/bin/cat\nno newline at the end",
        "#!/bin/cat\n'\"%&*!|>\u{1}é\n---\n...\n",
    ] {
        home.write(
            "job.yaml",
            &format!("script: {}\n", serde_json::to_string(script).unwrap()),
        );
        let first = ended(&home, &["-f", "job.yaml"]);
        assert_eq!(home.tow(["logs", &first]).ok().stdout, script);
        let again = through_a_file(&home, &first);
        assert_eq!(home.tow(["logs", &again]).ok().stdout, script);
    }
}

#[test]
fn every_key_comes_through_a_file() {
    let home = home_with_gpus();
    home.write(
        "job.yaml",
        "name: 'full-${{lr}}'\nexperiment: e\nresources: \
            {nodes: 1, gpus_per_node: 1, cpus_per_node: 1, memory: 64M, tier: basic, time: 2h30m}\nlaunch: 2\nenvironment: {setup: [echo ready], env: {A: '0', B: 'v${{lr}}'}}\ncode: {workdir: sub}\nretry: {when: [node_failed, time_limit], max: 10}\nhold_on_failure: 90s\nsweep: {lr: ['0.10', yes], '(bs, acc)': [[8, 4], [16, 2]], seed: 1-2}\ntags: [x, 'y z']\nscript: |\n  echo ${{lr}} ${{bs}} ${{acc}} ${{seed}} $A $B $(basename $PWD)\n",
    );
    std::fs::create_dir(home.project().join("sub")).unwrap();
    let first = ended(&home, &["-f", "job.yaml"]);
    let again = through_a_file(&home, &first);
    assert_eq!(runs(&home, &[&again]).len(), 8);
    for number in 1..=8 {
        let pair = [format!("{first}-{number}"), format!("{again}-{number}")];
        assert_eq!(
            home.tow(["diff", &pair[0], &pair[1], "--json"]).ok().json()["differences"],
            json!([])
        );
        let [one, other] = pair.map(|id| home.show(&id));
        for key in [
            "name",
            "experiment",
            "tags",
            "parameters",
            "gpus",
            "nodes",
            "ranks",
            "tier",
        ] {
            assert_eq!(one[key], other[key], "{key}");
        }
    }
    assert_eq!(
        home.tow(["logs", &format!("{again}-1")]).ok().stdout,
        "0.10 8 4 1 0 v0.10 sub\n"
    );
}

#[test]
fn options_of_the_command_line_are_in_the_file_too() {
    let home = home_with_gpus();
    let first = ended(
        &home,
        &[
            "-n",
            "2",
            "--name",
            "n",
            "--experiment",
            "e",
            "--tag",
            "t",
            "--tier",
            "basic",
            "--time",
            "1h",
            "--cpus",
            "2",
            "--memory",
            "64M",
            "--launch",
            "per_gpu",
            "--env",
            "A=1",
            "true",
        ],
    );
    let again = through_a_file(&home, &first);
    let [one, other] = [&first, &again].map(|id| home.show(id));
    for key in [
        "name",
        "experiment",
        "tags",
        "tier",
        "gpus",
        "nodes",
        "ranks",
        "command",
    ] {
        assert_eq!(one[key], other[key], "{key}");
    }
    assert_eq!(
        home.tow(["diff", &first, &again, "--json"]).ok().json()["differences"],
        json!([])
    );
}

#[test]
fn the_cluster_is_in_the_file_too() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local}\n  here: {kind: local}\n");
    let first = ended(&home, &["-c", "here", "true"]);
    let again = through_a_file(&home, &first);
    assert_eq!(home.show(&again)["cluster"], "here");
}

#[test]
fn as_json_it_is_the_job() {
    let home = home();
    let id = ended(&home, &["--name", "n", "echo", "a b"]);
    assert_eq!(
        home.tow(["history", &id, "--json"]).ok().json(),
        json!({"name": "n", "cluster": "local", "command": ["echo", "a b"]})
    );
}
