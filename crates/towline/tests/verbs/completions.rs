//! `tow completions`: scripts that shells can read.

use super::home;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn each_shell_has_one_that_knows_the_verbs() {
    let home = home();
    for shell in ["bash", "zsh", "fish"] {
        let output = home.tow(["completions", shell]).ok();
        assert_eq!(output.stderr, "");
        for verb in [
            "submit",
            "resubmit",
            "completions",
            "--dry-run",
            "--older-than",
        ] {
            let option = verb.trim_start_matches('-');
            assert!(
                output.stdout.contains(option),
                "{shell} does not know {verb}"
            );
        }
    }
    assert!(!home.path("state/towline").exists());
}

#[test]
fn bash_takes_it_and_completes() {
    let home = home();
    let script = home.tow(["completions", "bash"]).ok().stdout;
    let mut bash = Command::new("bash")
        .args(["--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ask =
        "COMP_WORDS=(tow resub); COMP_CWORD=1; _tow tow resub tow; echo \"${COMPREPLY[@]}\"\n";
    bash.stdin
        .take()
        .unwrap()
        .write_all(format!("{script}\n{ask}").as_bytes())
        .unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(
        (
            String::from_utf8_lossy(&output.stdout).trim(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        ("resubmit", "")
    );
}

#[test]
fn inner_words_are_not_offered() {
    let home = home();
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            !home
                .tow(["completions", shell])
                .ok()
                .stdout
                .contains("__runner"),
            "{shell}"
        );
    }
}
