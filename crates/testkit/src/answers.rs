//! Whether what `tow … --json` printed is what its schema says. Every `tow` of a [`crate::Home`] is
//! looked at.

use crate::home::Output;
use crate::schema::Checker;
use serde_json::Value;
use std::ffi::OsString;
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(towline_wire::report::schema::document);

/// Other names of verbs, as the command line knows them.
const ALIASES: [(&str, &str); 18] = [
    ("q", "query"),
    ("f", "qf"),
    ("failed", "qf"),
    ("list", "ps"),
    ("status", "ps"),
    ("parse", "why"),
    ("a", "abort"),
    ("cancel", "abort"),
    ("kill", "abort"),
    ("stop", "abort"),
    ("initc", "init"),
    ("u", "up"),
    ("upload", "up"),
    ("d", "down"),
    ("download", "down"),
    ("s", "clusters"),
    ("summary", "clusters"),
    ("blame", "nodes"),
];

/// Fails the test if a document that was printed is not as the schema says.
#[track_caller]
pub(crate) fn check(words: &[OsString], output: &Output) {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let mut own = words.iter().take_while(|word| **word != "--");
    if !own.any(|word| *word == "--json") {
        return;
    }
    let checker = Checker(&DOCUMENT);
    for line in output.stderr.lines() {
        if line.starts_with("{\"error\":")
            && let Ok(document) = serde_json::from_str(line)
        {
            let checked = checker.check(&DOCUMENT["error"], &document, "");
            assert_eq!(checked, Ok(()), "tow {words:?}: {line}");
        }
    }
    for document in documents(&output.stdout) {
        if let Err(wrong) = matches_verb(&checker, &words, &document) {
            panic!("tow {words:?} printed {document}, and {wrong}");
        }
    }
}

/// The documents of an output: one, or one per line. None if it is not JSON.
fn documents(stdout: &str) -> Vec<Value> {
    if let Ok(document) = serde_json::from_str(stdout) {
        return vec![document];
    }
    let lines = stdout.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap_or_default()
}

/// Whether one of the verb's forms (`ps`, `ps --remote`) prints such a document.
fn matches_verb(checker: &Checker<'_>, words: &[&str], document: &Value) -> Result<(), String> {
    let verb = verb(words).ok_or("the schema has no such verb")?;
    let mut wrong = Vec::new();
    for (form, entry) in DOCUMENT["verbs"].as_object().into_iter().flatten() {
        if verb_of(form) == verb {
            match checker.check(&entry["prints"], document, "") {
                Ok(()) => return Ok(()),
                Err(error) => wrong.push(format!("as `{form}`: {error}")),
            }
        }
    }
    Err(wrong.join("; "))
}

/// `tunnel ls` of `tunnel ls`, `query` of `query RUN`, `ps` of `ps --remote`.
fn verb_of(form: &str) -> String {
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let names: Vec<&str> = form.split(' ').take_while(is_name).collect();
    names.join(" ")
}

/// The verb of a command line: its first word that is one, and the next where verbs are grouped.
fn verb(words: &[&str]) -> Option<String> {
    let verbs: Vec<String> = DOCUMENT["verbs"]
        .as_object()?
        .keys()
        .map(|form| verb_of(form))
        .collect();
    let mut words = words.iter().map(|word| {
        let alias = ALIASES.iter().find(|(alias, _)| alias == word);
        (*word, alias.map_or(*word, |(_, verb)| *verb))
    });
    let first = words.find_map(|(_, word)| {
        let begins = |verb: &String| verb.split(' ').next() == Some(word);
        verbs.iter().any(begins).then_some(word)
    })?;
    let grouped = words.find_map(|(word, _)| {
        let word = if word == "list" { "ls" } else { word };
        let whole = format!("{first} {word}");
        verbs.contains(&whole).then_some(whole)
    });
    // `roles` is a verb by itself, and has others below it.
    let alone = || verbs.iter().find(|verb| *verb == first).cloned();
    grouped.or_else(alone)
}

#[cfg(test)]
mod tests {
    use super::{Output, check, verb};
    use std::ffi::OsString;

    fn checked(line: &str, stdout: &str, stderr: &str) -> bool {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let output = Output {
            code: 0,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            raw: Vec::new(),
        };
        std::panic::catch_unwind(|| check(&words, &output)).is_ok()
    }

    #[test]
    fn an_answer_that_the_schema_does_not_know_fails_the_test() {
        let good = "{\"cancelling\":[],\"already_ended\":[]}";
        assert!(checked("abort --json @", good, ""));
        assert!(checked("a @ --json", good, ""));
        for wrong in [
            "{\"cancelling\":[]}",
            "{\"cancelling\":[],\"already_ended\":[],\"more\":1}",
            "{\"cancelling\":[1],\"already_ended\":[]}",
            "{\"runs\":[]}",
        ] {
            assert!(!checked("abort --json @", wrong, ""), "{wrong}");
            assert!(checked("abort @", wrong, ""), "no JSON was asked for");
        }
        assert!(checked("abort --json @", "", "a warning\n"));
        assert!(!checked("abort --json @", "", "{\"error\":\"usage\"}\n"));
    }

    #[test]
    fn every_line_of_a_stream_is_checked() {
        let line = "{\"run\":\"a-1-00000001\",\"attempt\":1,\"rank\":0,\"line\":\"x\"}\n";
        assert!(checked("logs --json", &line.repeat(2), ""));
        let wrong = line.replace("rank", "rnak");
        assert!(!checked("logs --json", &format!("{line}{wrong}"), ""));
    }

    #[test]
    fn the_verb_is_found_among_options() {
        let found = |line: &str| verb(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(found("-c lab q --json @").as_deref(), Some("query"));
        assert_eq!(found("tunnel --json list").as_deref(), Some("tunnel ls"));
        assert_eq!(found("roles --json").as_deref(), Some("roles"));
        let below = found("roles --json activate Owner");
        assert_eq!(below.as_deref(), Some("roles activate"));
        assert_eq!(found("nosuch --json").as_deref(), None);
    }
}
