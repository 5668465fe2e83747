//! `tow completions` and the process behind it. What real shells make of it is tried in
//! `tests/shells/`.

use super::{ended, home};
use std::time::{Duration, Instant};
use towline_testkit::{Home, Output};

fn complete(home: &Home, words: &[&str]) -> Output {
    home.tow([&["__complete"], words].concat())
}

/// A person who types must not see an error, nor wait, nor start anything.
#[test]
fn an_answer_is_silent_and_changes_nothing() {
    let home = home();
    let ask = || {
        for line in [
            "tow logs ",
            "tow -c ",
            "tow up ",
            "tow scratch backup ",
            "tow ",
        ] {
            let output = complete(&home, &["bash", line, ""]);
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{line}");
        }
    };
    ask();
    assert!(!home.path("state/towline").exists());
    home.configure("clusters: [this is: no configuration\n");
    ask();
    home.configure("");
    let id = ended(&home, &["true"]);
    home.tow(["daemon", "stop"]).ok();
    assert!(home.daemon().is_none());
    ask();
    assert_eq!(
        complete(&home, &["bash", "tow logs ", ""]).stdout,
        format!("values\n{id}\n")
    );
    assert!(home.daemon().is_none(), "no daemon was started");
    std::fs::write(home.state().history(), "this is no database").unwrap();
    ask();
    for words in [&["bash"][..], &["zsh"], &["fish", ""], &["nonsense", "tow"]] {
        assert_eq!(complete(&home, words).stderr, "", "{words:?}");
    }
}

#[test]
fn an_answer_takes_milliseconds() {
    let home = home();
    home.tow(["submit", "--sweep", "x=1-600", "true"]).ok();
    let once = || {
        let begun = Instant::now();
        complete(&home, &["fish", "tow", "logs", ""]).ok();
        begun.elapsed()
    };
    let quickest = (0..20).map(|_| once()).min().unwrap();
    // A tenth of it on an idle machine. The whole of it is what a person does not notice.
    assert!(quickest < Duration::from_millis(50), "{quickest:?}");
}

#[test]
fn scripts_ask_the_program_and_name_no_inner_word() {
    let home = home();
    for shell in ["bash", "zsh", "fish"] {
        let output = home.tow(["completions", shell]).ok();
        assert_eq!(output.stderr, "");
        assert!(output.stdout.contains("__complete"), "{shell}");
        assert!(!output.stdout.contains("__runner"), "{shell}");
    }
    assert!(!home.path("state/towline").exists());
}

#[test]
fn other_shells_have_verbs_and_options() {
    let home = home();
    for shell in ["elvish", "powershell"] {
        let output = home.tow(["completions", shell]).ok();
        assert_eq!(output.stderr, "");
        for word in ["resubmit", "older-than"] {
            assert!(output.stdout.contains(word), "{shell} does not know {word}");
        }
        assert!(!output.stdout.contains("__runner"), "{shell}");
    }
    assert!(!home.path("state/towline").exists());
}
