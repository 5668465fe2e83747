//! Help: every verb has it, with examples that hold.

use super::home;
use towline_testkit::Home;

/// The verbs as `tow --help` lists them.
fn verbs(home: &Home) -> Vec<String> {
    let help = home.tow(["--help"]).ok().stdout;
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let verbs = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned());
    let verbs: Vec<String> = verbs.collect();
    assert!(verbs.len() > 30, "{help}");
    verbs
}

#[test]
fn every_verb_of_the_contract_is_listed() {
    let home = home();
    let verbs = verbs(&home);
    for verb in [
        "submit",
        "run",
        "ps",
        "query",
        "logs",
        "why",
        "show",
        "get",
        "abort",
        "resubmit",
        "wait",
        "diff",
        "history",
        "import",
        "init",
        "snapshot",
        "prune",
        "adopt",
        "ssh",
        "port",
        "tunnel",
        "alloc",
        "release",
        "ls",
        "up",
        "down",
        "rm",
        "cp",
        "url",
        "sync",
        "scratch",
        "clusters",
        "nodes",
        "config",
        "doctor",
        "daemon",
        "completions",
    ] {
        assert!(
            verbs.iter().any(|known| known == verb),
            "{verb} is not in {verbs:?}"
        );
    }
}

#[test]
fn every_verb_has_help_with_examples() {
    let home = home();
    let mut without = Vec::new();
    for verb in verbs(&home) {
        for option in ["--help", "-h"] {
            let output = home.tow([&verb, option]).ok();
            assert_eq!(output.stderr, "", "{verb}");
            assert!(
                output.stdout.contains(&format!("Usage: tow {verb}")),
                "{verb}: {}",
                output.stdout
            );
            if !output.stdout.contains("Examples:\n  tow ") {
                without.push(format!("{verb} {option}"));
            }
        }
    }
    assert!(without.is_empty(), "no examples: {without:?}");
    assert!(!home.path("state/towline").exists(), "help makes nothing");
}

#[test]
fn options_in_examples_exist() {
    let home = home();
    let mut seen = 0;
    for verb in verbs(&home) {
        let help = home.tow([&verb, "--help"]).ok().stdout;
        for line in help
            .lines()
            .skip_while(|line| *line != "Examples:")
            .filter(|line| line.starts_with("  tow "))
        {
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            let named = home.tow([words[0], "--help"]).ok().stdout;
            for option in words
                .iter()
                .skip(1)
                .take_while(|word| **word != "python" && **word != "|")
                .filter(|word| word.starts_with("--") && word.len() > 2)
            {
                assert!(
                    named.contains(option),
                    "{line}: `tow {}` has no {option}",
                    words[0]
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "only {seen} options were looked for");
}

#[test]
fn help_fits_a_hundred_columns_and_has_no_colour() {
    let home = home();
    for verb in verbs(&home) {
        let text = home.tow([&verb, "--help"]).ok().stdout;
        assert!(!text.contains('\x1b'), "{verb}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{verb}: {line}");
        }
    }
}

#[test]
fn every_option_says_what_it_is() {
    let home = home();
    let mut without = Vec::new();
    for verb in verbs(&home) {
        let help = home.tow([&verb, "-h"]).ok().stdout;
        let lines: Vec<&str> = help.lines().collect();
        for (at, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.starts_with("  ") && line.trim_start().starts_with('-'))
        {
            let described = line.trim().split("  ").count() > 1
                || lines
                    .get(at + 1)
                    .is_some_and(|next| next.starts_with("          "));
            if !described {
                without.push(format!("{verb} {}", line.trim()));
            }
        }
    }
    assert!(without.is_empty(), "no description: {without:?}");
}

#[test]
fn an_unknown_verb_gets_a_suggestion() {
    let home = home();
    for (typed, meant) in [
        ("log", "logs"),
        ("sumbit", "submit"),
        ("resubmti", "resubmit"),
        ("aborr", "abort"),
        ("cluster", "clusters"),
        ("hist", "history"),
    ] {
        let output = home.tow([typed, "@"]);
        assert_eq!((output.code, output.stdout.as_str()), (120, ""), "{typed}");
        assert!(
            output.stderr.contains(typed)
                && output.stderr.contains(&format!("did you mean `{meant}`")),
            "{typed}: {}",
            output.stderr
        );
    }
}

#[test]
fn the_version_is_told() {
    let home = home();
    for words in [["--version"], ["-V"]] {
        let output = home.tow(words).ok();
        super::assert_matches(&output.stdout, r"\Atow \d+\.\d+\.\d+\n\z");
    }
}
