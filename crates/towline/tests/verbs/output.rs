//! What goes out: all of it or an error, and nothing that would command a terminal.

use super::{ended, home, runs};
use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use towline_testkit::{Home, Output};

/// A device that is always full.
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

fn into_full(home: &Home, words: &[&str]) -> Output {
    home.command(words)
        .stdout(full())
        .stderr(Stdio::piped())
        .output()
        .unwrap()
        .into()
}

#[test]
fn output_that_cannot_be_written_is_an_error_of_every_verb() {
    let home = home();
    let id = ended(&home, &["echo", "hello"]);
    let verbs: [&[&str]; 13] = [
        &["ps"],
        &["ps", "--json"],
        &["logs", &id],
        &["logs", &id, "--json"],
        &["logs", &id, "--grep", "hello"],
        &["show", &id],
        &["query", &id],
        &["why", &id],
        &["history", &id],
        &["config", "show"],
        &["daemon", "status"],
        &["--version"],
        &["submit", "--help"],
    ];
    for words in verbs {
        let output = into_full(&home, words);
        assert_eq!(output.code, 123, "{words:?}: {output:?}");
        assert!(
            output.stderr.contains("stdout") && output.stderr.contains("No space left on device"),
            "{words:?}: {}",
            output.stderr
        );
    }
    let output = into_full(&home, &["run", "echo", "lost"]);
    assert!(
        output.code == 123 && output.stderr.contains("No space left on device"),
        "{output:?}"
    );
    // The job's own code says more.
    let failed = ended(&home, &["sh", "-c", "exit 3"]);
    assert_eq!(into_full(&home, &["wait", &failed]).code, 3);
}

#[test]
fn a_submission_whose_id_cannot_be_written_is_told_on_stderr() {
    let home = home();
    for words in [&["submit", "true"][..], &["--json", "submit", "true"]] {
        let before = runs(&home, &[]).len();
        let output = into_full(&home, words);
        assert_eq!(output.code, 123, "{output:?}");
        let after = runs(&home, &[]);
        assert_eq!(after.len(), before + 1, "it is submitted all the same");
        let id = after[0]["id"].as_str().unwrap();
        assert!(output.stderr.contains(id), "{}", output.stderr);
    }
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let home = home();
    let id = ended(&home, &["seq", "1", "100000"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut child = home
        .command(["logs", &id])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    reader.read_exact(&mut [0; 10]).unwrap();
    drop(reader);
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), stderr.as_str()),
        (Some(0), "")
    );
}

#[test]
fn a_stderr_that_cannot_be_written_changes_nothing() {
    let home = home();
    let output: Output = home
        .command(["submit", "true"])
        .stderr(full())
        .stdout(Stdio::piped())
        .output()
        .unwrap()
        .into();
    assert!(
        output.code == 0 && output.stdout.starts_with("true-"),
        "{output:?}"
    );
    assert_eq!(
        home.command(["ps", "--state", "nonsense"])
            .stderr(full())
            .output()
            .unwrap()
            .status
            .code(),
        Some(120)
    );
}

/// Sets a title, rings, clears the screen in the short form, turns the direction of writing, goes
/// back to the start of the line.
const HOSTILE: &str = "a\x1b]0;T\x07\x1b[31mX\u{9b}2J\u{202e}txt\u{2066}\rb";

#[track_caller]
fn assert_plain(what: &str, output: &Output) {
    assert!(
        !output.stdout.is_empty() || !output.stderr.is_empty(),
        "{what} says nothing"
    );
    for text in [&output.stdout, &output.stderr] {
        let odd = text.chars().find(|c| {
            c.is_control() && !matches!(c, '\n' | '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(odd, None, "{what}: {text:?}");
    }
}

#[test]
fn no_name_of_anybody_commands_the_terminal() {
    let home = home().freezing();
    home.write(&format!("file-{}", HOSTILE.replace('\r', "")), "content\n");
    let env = format!("VARIABLE={HOSTILE}");
    let job = [
        "--name",
        HOSTILE,
        "--experiment",
        HOSTILE,
        "--tag",
        HOSTILE,
        "--env",
        &env,
    ];
    let command = ["sh", "-c", "exit 3", HOSTILE];
    let dry = home
        .tow([&["submit", "--dry-run"], &job[..], &command[..]].concat())
        .ok();
    assert_plain("dry run", &dry);
    assert!(
        dry.stdout.contains(r"\x1b]0;T\x07"),
        "it is written out: {}",
        dry.stdout
    );
    let submitted = home
        .tow([&["submit"], &job[..], &command[..]].concat())
        .ok();
    assert_plain("submit", &submitted);
    let id = submitted.id();
    home.tow(["wait", &id]);
    let option = format!("--{HOSTILE}");
    let verbs: [&[&str]; 19] = [
        &["ps"],
        &["ps", "--tag", HOSTILE],
        &["show", &id],
        &["show", &id, "--events"],
        &["history"],
        &["history", &id],
        &["why", &id],
        &["query", &id],
        &["diff", &id, &id],
        &["get", &id, "."],
        &["init", "--explain"],
        &["resubmit", &id, "-n", "99"],
        &["ps", HOSTILE],
        &["logs", HOSTILE],
        &["submit", "--cluster", HOSTILE, "true"],
        &[HOSTILE],
        // Told by the parser of arguments.
        &["completions", HOSTILE],
        &["submit", &option, "true"],
        &["ps", "--limit", HOSTILE],
    ];
    for words in verbs {
        assert_plain(&words.join(" "), &home.tow(words));
        let with_json = [&["--json"][..], words].concat();
        assert_plain(&with_json.join(" "), &home.tow(with_json));
    }
    assert!(home.tow(["ps"]).ok().stdout.contains(r"\u{202e}txt"));
    let name = home.tow(["show", &id, "--json"]).ok().json()["name"].clone();
    assert_eq!(name, HOSTILE, "for programs it is what it is");
}

#[test]
fn what_a_job_prints_stays_as_it_is() {
    let home = home();
    let id = ended(&home, &["printf", r"\033[31mred\033[0m\r\n"]);
    assert_eq!(home.tow(["logs", &id]).ok().raw, b"\x1b[31mred\x1b[0m\r\n");
    assert_eq!(
        home.tow(["run", "printf", r"\033[1mbold\n"]).ok().raw,
        b"\x1b[1mbold\n"
    );
}
