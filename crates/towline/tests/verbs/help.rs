//! Help: every verb has it, with examples that hold.

use super::home;
use towline_testkit::Home;

/// The verbs as `tow --help` lists them: all lines of two blanks and a word, below any heading.
fn verbs(home: &Home) -> Vec<String> {
    let help = home.tow(["--help"]).ok().stdout;
    let listed = help.lines().take_while(|line| *line != "Options:");
    let verbs = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned());
    let verbs: Vec<String> = verbs.collect();
    assert!(verbs.len() > 30, "{help}");
    verbs
}

/// The whole page, as it is. After a change that is meant:
/// `cargo run -- --help > crates/towline/tests/verbs/help.txt`
#[test]
fn the_first_page_lists_every_verb_in_its_group() {
    let home = home();
    let page = include_str!("help.txt");
    for words in [&["--help"][..], &["-h"], &["help"]] {
        let output = home.tow(words).ok();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (page, ""));
    }
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let output = home.tow([""; 0]);
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.trim()),
        (120, "", page.trim()),
        "without a verb the page is for people, and nothing was done"
    );
}

/// The names of older tools, and of habit, and the verb that each is.
#[test]
fn old_names_are_not_listed_and_work() {
    let home = home();
    let listed = verbs(&home);
    for (old, verb) in [
        ("q", "query"),
        ("a", "abort"),
        ("cancel", "abort"),
        ("kill", "abort"),
        ("stop", "abort"),
        ("u", "up"),
        ("upload", "up"),
        ("d", "down"),
        ("download", "down"),
        ("s", "clusters"),
        ("summary", "clusters"),
        ("blame", "nodes"),
        ("parse", "why"),
        ("list", "ps"),
        ("status", "ps"),
        ("initc", "init"),
        ("initi", "init"),
        ("initic", "init"),
    ] {
        assert!(!listed.iter().any(|known| known == old), "{old}");
        assert_eq!(
            home.tow([old, "--help"]).ok().stdout,
            home.tow([verb, "--help"]).ok().stdout,
            "{old}"
        );
    }
    for old in ["qf", "f", "failed", "qq", "qr"] {
        assert!(!listed.iter().any(|known| known == old), "{old}");
        let help = home.tow([old, "--help"]).ok().stdout;
        assert!(help.contains("tow ps --state"), "{old}: {help}");
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
fn every_option_and_argument_says_what_it_is() {
    let home = home();
    let mut without = Vec::new();
    for verb in verbs(&home) {
        let help = home.tow([&verb, "-h"]).ok().stdout;
        let lines: Vec<&str> = help.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| {
            line.starts_with("  ") && line.trim_start().starts_with(['-', '<', '['])
        }) {
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
