//! Every answer of `--json` is a type of `wire/src/report/`, and the schema has every verb.

use super::sources::{Source, code, crates, product};
use std::collections::BTreeSet;
use std::fs;

/// Product code of the program, without its tests.
fn program() -> impl Iterator<Item = Source> {
    let sources = product().into_iter();
    sources
        .filter(|source| source.path.starts_with("towline/src/"))
        .map(|source| {
            let end = source.text.find("#[cfg(test)]");
            let text = code(&source.text[..end.unwrap_or(source.text.len())]);
            Source { text, ..source }
        })
}

#[test]
fn no_verb_makes_json_by_hand() {
    let by_hand = |line: &str, path: &str| {
        let is_verb = path.starts_with("towline/src/commands/") || path.ends_with("/transfers.rs");
        line.contains("json!") || is_verb && line.contains("Serialize)]")
    };
    let mut found = Vec::new();
    // A schema is a document of JSON.
    let answers = program().filter(|source| !source.path.ends_with("/api/description.rs"));
    for source in answers {
        for (number, line) in source.text.lines().enumerate() {
            if by_hand(line, &source.path) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Verbs that print nothing for programs.
const WITHOUT_ANSWER: [&str; 4] = ["api", "completions", "port", "ssh"];

#[test]
fn the_schema_has_every_verb_of_the_reference() {
    let page = fs::read_to_string(crates().join("../docs/reference/cli.md")).unwrap();
    let verbs: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## tow "))
        .filter(|verb| !WITHOUT_ANSWER.contains(verb))
        .collect();
    assert!(verbs.len() > 50, "the reference was read: {verbs:?}");
    let schema = towline_wire::report::schema::document();
    let forms: Vec<&String> = schema["verbs"].as_object().unwrap().keys().collect();
    let has = |verb: &&str| {
        let mut forms = forms.iter();
        forms.any(|form| form.as_str() == *verb || form.starts_with(&format!("{verb} ")))
    };
    let missing: Vec<&&str> = verbs.iter().filter(|verb| !has(verb)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_has_every_field_of_a_run() {
    let page = fs::read_to_string(crates().join("../docs/reference/json.md")).unwrap();
    let table = page.split("\n## ").find(|part| part.starts_with("A run"));
    let rows = table
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let on_page: BTreeSet<&str> = rows
        .flat_map(|row| row.split(" | ").next().unwrap_or_default().split(", "))
        .map(|name| name.trim_matches('`'))
        .collect();
    let schema = towline_wire::report::schema::document();
    let fields = schema["$defs"]["Run"]["properties"].as_object();
    let fields: BTreeSet<&str> = fields.unwrap().keys().map(String::as_str).collect();
    assert!(fields.len() > 25, "the type was read: {fields:?}");
    let differing: Vec<_> = fields.symmetric_difference(&on_page).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let committed = fs::read_to_string(crates().join("../docs/reference/json.schema.json"));
    let committed: serde_json::Value = serde_json::from_str(&committed.unwrap()).unwrap();
    let made = towline_wire::report::schema::document();
    assert!(committed == made, "out of date: cargo xtask generate");
}
