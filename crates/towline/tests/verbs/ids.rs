//! How runs are named: any unique part to read, four characters of the end to change.

use super::{assert_matches, busy_home, ended, home, runs};
use std::collections::HashMap;
use towline_testkit::Home;

#[test]
fn any_unique_part_is_enough_to_read_and_the_end_comes_first() {
    let home = home();
    let one = ended(&home, &["--name", "alpha", "echo", "one"]);
    let two = ended(&home, &["--name", "beta", "echo", "two"]);
    for (text, id) in [
        (one.as_str(), &one),
        (&one[one.len() - 8..], &one),
        (&one[one.len() - 5..], &one),
        ("alpha", &one),
        ("lph", &one),
        ("ALPHA", &one),
        ("beta-", &two),
        ("@", &two),
        (&one.replace('-', "_"), &one),
        (&format!("assets/{one}/"), &one),
    ] {
        assert_eq!(home.show(text)["id"], id.as_str(), "{text}");
    }
    // A name that is the end of another id as well: the end wins.
    let end = &one[one.len() - 4..];
    let three = ended(&home, &["--name", &format!("x{end}y"), "echo", "three"]);
    assert_eq!(home.show(end)["id"], one.as_str());
    assert_eq!(home.show(&format!("x{end}"))["id"], three.as_str());
}

#[test]
fn an_ambiguous_part_lists_the_candidates() {
    let home = home();
    let one = ended(&home, &["--name", "same", "true"]);
    let two = ended(&home, &["--name", "same", "true"]);
    for verb in [
        "show", "logs", "why", "query", "history", "ps", "wait", "ssh", "get",
    ] {
        let words: &[&str] = if verb == "get" {
            &[verb, "same", "x"]
        } else {
            &[verb, "same"]
        };
        let output = home.tow(words);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (122, ""),
            "{verb}: {output:?}"
        );
        assert!(
            output.stderr.contains(&one) && output.stderr.contains(&two),
            "{verb}: {}",
            output.stderr
        );
    }
    let error: serde_json::Value =
        serde_json::from_str(&home.tow(["show", "same", "--json"]).stderr).unwrap();
    assert_eq!(
        (error["error"].as_str(), error["exit_code"].as_i64()),
        (Some("ambiguous"), Some(122))
    );
}

#[test]
fn to_change_a_run_takes_four_characters_of_its_end() {
    let (home, holder) = busy_home();
    let unchanged = || {
        let run = home.show(&holder);
        assert_eq!(
            (run["state"].as_str(), run["cancel_requested"].as_bool()),
            (Some("running"), Some(false))
        );
        assert_eq!(runs(&home, &[]).len(), 1);
    };
    for verb in ["abort", "resubmit"] {
        for (text, code) in [
            (&holder[holder.len() - 3..], 120),
            (&holder[holder.len() - 1..], 120),
            ("holder", 122),
            (&holder[..holder.len() - 1], 122),
            ("feed", 122),
        ] {
            let output = home.tow([verb, text]);
            assert_eq!(
                (output.code, output.stdout.as_str()),
                (code, ""),
                "{verb} {text}: {output:?}"
            );
            assert_matches(&output.stderr, r"(?m)^error: .+\n hint: ");
            unchanged();
        }
    }
    home.tow(["abort", &holder[holder.len() - 4..], "--wait"])
        .ok();
    assert_eq!(home.state_of(&holder), "cancelled");
}

/// Two sweeps whose ids end with the same character: `c-10` names a run of each.
fn two_alike(home: &Home) -> (String, String, String) {
    let mut seen: HashMap<String, String> = HashMap::new();
    loop {
        let sweep = home
            .tow(["submit", "--sweep", "a=1-10", "sleep", "300"])
            .ok()
            .id();
        let end = sweep[sweep.len() - 1..].to_owned();
        if let Some(other) = seen.insert(end.clone(), sweep.clone()) {
            return (
                format!("{end}-10"),
                format!("{other}-10"),
                format!("{sweep}-10"),
            );
        }
    }
}

#[test]
fn an_ambiguous_end_lists_the_candidates_and_changes_nothing() {
    let (home, holder) = busy_home();
    let (text, one, other) = two_alike(&home);
    let before = runs(&home, &["--all"]);
    for words in [
        &["abort", &text][..],
        &["resubmit", &text],
        &["abort", &holder, &text],
        &["abort", &text, &holder],
    ] {
        let output = home.tow(words);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (122, ""),
            "{words:?}"
        );
        assert!(
            output.stderr.contains(&one) && output.stderr.contains(&other),
            "{words:?}: {}",
            output.stderr
        );
        assert_eq!(
            runs(&home, &["--all"]),
            before,
            "{words:?} changed something"
        );
    }
}

#[test]
fn without_any_run_the_first_step_is_told() {
    let home = home();
    for words in [
        &["show", "@"][..],
        &["logs", "@"],
        &["abort", "@"],
        &["resubmit", "@"],
        &["why", "abcd"],
        &["submit", "--from", "@"],
    ] {
        let output = home.tow(words);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (122, ""),
            "{words:?}"
        );
        assert!(
            output.stderr.contains("tow run echo hello"),
            "{words:?}: {}",
            output.stderr
        );
    }
    assert!(
        !home.path("state/towline").exists(),
        "reading makes nothing"
    );
}

#[test]
fn the_one_before_the_latest() {
    let home = home();
    let ids: Vec<String> = (0..3)
        .map(|number| ended(&home, &["echo", &number.to_string()]))
        .collect();
    assert_eq!(home.tow(["logs", "@"]).ok().stdout, "2\n");
    assert_eq!(home.tow(["logs", "@-1"]).ok().stdout, "1\n");
    assert_eq!(home.show("@-2")["id"], ids[0].as_str());
    let none = home.tow(["logs", "@-3"]);
    assert_eq!(none.code, 122);
    assert!(
        none.stderr.contains("only 3 submission(s)"),
        "{}",
        none.stderr
    );
    assert_eq!(home.tow(["logs", "@-x"]).code, 120);
}
