//! Rust files of the tree, and their identifiers.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder that holds all crates.
pub(crate) fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// A file, by its path below the crates.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every file of product code, in the order of paths.
pub(crate) fn product() -> Vec<Source> {
    let mut found = Vec::new();
    let mut todo = vec![crates()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(crates()).unwrap();
                let path = path.to_str().unwrap().to_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.retain(|source| source.path.contains("/src/"));
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(found.len() > 400, "the tree was looked at");
    found
}

/// Code without comments and texts.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(length) = raw_text(rest) {
            length
        } else if first == '"' {
            plain_text(rest)
        } else if first == '\'' {
            character(rest)
        } else {
            0
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.push(' ');
            // Lines stay where they are.
            code.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            rest = &rest[skipped..];
        }
    }
    code
}

fn raw_text(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let marks = after.len() - after.trim_start_matches('#').len();
    after[marks..].strip_prefix('"')?;
    let begin = rest.len() - after.len() + marks + 1;
    let end = format!("\"{}", "#".repeat(marks));
    Some(begin + rest[begin..].find(&end)? + end.len())
}

fn plain_text(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character, not a lifetime.
fn character(rest: &str) -> usize {
    let mut parts = rest.char_indices().skip(1);
    match parts.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(0, |end| end + 4),
        Some(_) => match parts.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Identifiers with the number of their line.
pub(crate) fn identifiers(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(number, line)| {
        line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
            .map(move |word| (number + 1, word))
    })
}

#[test]
fn code_is_told_from_comments_and_texts() {
    let text =
        "let a = 'x'; // doomed\nlet b: &'a str = \"doomed \\\" word\"; let c = r#\"in\"#;\n";
    let code = code(text);
    let words: Vec<&str> = identifiers(&code).map(|(_, word)| word).collect();
    assert_eq!(words, ["let", "a", "let", "b", "a", "str", "let", "c"]);
}
