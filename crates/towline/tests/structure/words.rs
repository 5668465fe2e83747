//! Words that the glossary takes out of use are in no name.

use super::sources::{code, crates, identifiers, product};
use std::collections::BTreeSet;
use std::fs;

/// The left column of the second table of the glossary, where no use is fine.
fn unused_words() -> BTreeSet<String> {
    let page = fs::read_to_string(crates().join("../docs/glossary.md")).unwrap();
    let (_, table) = page.split_once("## Words we do not use").unwrap();
    let cell = |row: &str| {
        let (word, rest) = row.strip_prefix("| `")?.split_once('`')?;
        let has_no_exception = rest.trim_end().ends_with("| |");
        has_no_exception.then(|| word.to_owned())
    };
    table.lines().filter_map(cell).collect()
}

/// `has_twins` and `HasTwins` are `has`, `twins`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || c.is_ascii_uppercase() && !before.is_ascii_uppercase() {
            parts.push(String::new());
        }
        if c != '_' {
            parts.last_mut().unwrap().push(c.to_ascii_lowercase());
        }
        before = c;
    }
    parts
}

#[test]
fn no_name_has_a_word_that_is_not_used() {
    let unused = unused_words();
    assert!(unused.len() > 10, "the glossary was read: {unused:?}");
    let mut found = BTreeSet::new();
    for source in product() {
        let code = code(&source.text);
        for (number, name) in identifiers(&code) {
            if parts(name).iter().any(|part| unused.contains(part)) {
                found.insert(format!("{}:{number}: {name}", source.path));
            }
        }
    }
    assert!(found.is_empty(), "{} names: {found:#?}", found.len());
}
