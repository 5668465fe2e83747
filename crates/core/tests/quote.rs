//! Quoted words, as real shells read them.
#![expect(clippy::disallowed_methods, reason = "the shells themselves are asked")]

use proptest::prelude::*;
use std::process::{Command, Stdio};
use towline_core::quote;

/// The arguments of a program when `line` goes through `shell`.
fn received(shell: &str, line: &str) -> Vec<Vec<u8>> {
    let output = Command::new(shell)
        .args(["-c", line])
        .stdin(Stdio::null())
        .output()
        .expect("the shell runs");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{shell} {line:?}: {output:?}"
    );
    let mut argv: Vec<Vec<u8>> = output
        .stdout
        .split(|byte| *byte == 0)
        .map(<[u8]>::to_vec)
        .collect();
    assert_eq!(argv.pop(), Some(Vec::new()));
    argv
}

fn check(shell: &str, quote: fn(&str) -> String, argv: &[&str]) {
    // The shell's own `printf` would not be started as a program. It prints nothing if it has no
    // argument.
    let words: Vec<&str> = ["first"].into_iter().chain(argv.iter().copied()).collect();
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    let line = format!("/usr/bin/printf '%s\\0' {}", quoted.join(" "));
    let expected: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    assert_eq!(received(shell, &line), expected, "{shell}");
}

/// Words that shells interpret.
const HOSTILE: [&str; 24] = [
    "",
    " ",
    "a b",
    "-n",
    "--",
    "it's",
    "a\"b",
    "$HOME",
    "`id`",
    "!!",
    "a!b",
    "a\nb",
    "end\n",
    "\\",
    "\\'",
    "*",
    "~",
    "a=~",
    "é ☃",
    "\u{1b}[0m",
    "a=b",
    "%s",
    "#",
    "^a^b",
];

#[test]
fn hostile_words_arrive_unchanged() {
    for shell in ["sh", "bash"] {
        check(shell, quote::word, &HOSTILE);
        check(shell, quote::shown, &HOSTILE);
    }
}

#[test]
fn the_first_word_of_a_line_is_a_program_whatever_its_name() {
    let folder = std::env::temp_dir().join(format!("tow-quote-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["A=b", "~", "a b", "!x", "é"] {
        std::os::unix::fs::symlink("/usr/bin/printf", folder.join(name)).expect("a link");
        let output = Command::new("/bin/sh")
            .args(["-c", &quote::line(&[name, "%s", "ran"])])
            .env("PATH", &folder)
            .output();
        let output = output.expect("the shell runs");
        assert_eq!(output.stdout, b"ran", "{name}: {output:?}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

fn hostile() -> impl Strategy<Value = Vec<String>> {
    let one = prop_oneof![
        "[ '\"\\\\$`!\n\t\r;&|<>(){}\\[\\]*?~#=%^-]{0,12}",
        "[^\0]{0,20}",
        "-{1,2}[a-z']{0,3}"
    ];
    proptest::collection::vec(one, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_words_arrive_unchanged(argv in hostile()) {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        check("sh", quote::word, &argv);
        check("sh", quote::shown, &argv);
    }
}
