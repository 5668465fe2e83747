//! JSON with comments and trailing commas. Both are replaced by blanks, so that every value keeps
//! its line and column.

use std::path::Path;
use towline_core::{Error, Result};

/// Whether a file is JSON: by its ending, or by its first character if the ending is not that of
/// YAML.
pub(super) fn is_json(file: &Path, text: &str) -> bool {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => true,
        Some("yaml" | "yml") => false,
        _ => text.trim_start().starts_with('{'),
    }
}

/// The text as plain JSON that YAML reads too, or an error with its position.
pub(super) fn plain(file: &Path, text: &str) -> Result<String> {
    let text = without_commas(&without_comments(text));
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        let words = error.to_string();
        let what = words
            .rsplit_once(" at line ")
            .map_or(words.as_str(), |(what, _)| what);
        // serde_json counts bytes; people and editors count characters.
        let line = text
            .lines()
            .nth(error.line().saturating_sub(1))
            .unwrap_or_default();
        let column = line
            .char_indices()
            .take_while(|(byte, _)| *byte < error.column())
            .count()
            .max(1);
        return Err(Error::config(format!(
            "{}:{}:{column}: not valid JSON: {what}",
            file.display(),
            error.line().max(1)
        )));
    }
    // Only between values, because JSON has no tabs inside of texts.
    Ok(text.replace('\t', " "))
}

fn without_comments(text: &str) -> String {
    #[derive(PartialEq)]
    enum At {
        Value,
        Text,
        Line,
        Block,
    }
    let mut made = String::with_capacity(text.len());
    let (mut at, mut escaped) = (At::Value, false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        match at {
            At::Text => {
                at = if c == '"' && !escaped {
                    At::Value
                } else {
                    At::Text
                };
                escaped = c == '\\' && !escaped;
                made.push(c);
            }
            At::Value if c == '/' && matches!(next, Some('/' | '*')) => {
                at = if next == Some('/') {
                    At::Line
                } else {
                    At::Block
                };
                characters.next();
                made += "  ";
            }
            At::Block if c == '*' && next == Some('/') => {
                at = At::Value;
                characters.next();
                made += "  ";
            }
            At::Line | At::Block => {
                at = if c == '\n' && at == At::Line {
                    At::Value
                } else {
                    at
                };
                made.push(if c == '\n' || c == '\r' { c } else { ' ' });
            }
            At::Value => {
                at = if c == '"' { At::Text } else { At::Value };
                made.push(c);
            }
        }
    }
    made
}

/// Without the commas that stand before a `}` or `]`.
fn without_commas(text: &str) -> String {
    let (mut within, mut escaped) = (false, false);
    let mut made = String::with_capacity(text.len());
    for (index, c) in text.char_indices() {
        let is_last = c == ',' && !within && text[index + 1..].trim_start().starts_with(['}', ']']);
        made.push(if is_last { ' ' } else { c });
        within ^= c == '"' && !escaped;
        escaped = within && c == '\\' && !escaped;
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_are_blanks() {
        let text =
            "{ // \"one\"\n\t\"a\": \"x//y /*z*/ \\\", }\", /* two\n lines */ \"b\": [1, 2,\n],}";
        assert_eq!(
            plain(Path::new("x.json"), text).expect("JSON"),
            "{         \n \"a\": \"x//y /*z*/ \\\", }\",       \n          \"b\": [1, 2 \n] }"
        );
        assert!(
            is_json(Path::new("x"), " {")
                && is_json(Path::new("x.json"), "a")
                && !is_json(Path::new("x.yaml"), "{a: 1}")
                && !is_json(Path::new("x"), "a: 1")
        );
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        for (text, part) in [
            (
                "{\"a\": 1\n \"b\": 2}",
                "x.json:2:2: not valid JSON: expected `,` or `}`",
            ),
            ("{\"é\": tru}", "x.json:1:10: not valid JSON"),
            ("{", "x.json:1:1: not valid JSON: EOF"),
        ] {
            let error = plain(Path::new("x.json"), text)
                .expect_err("refused")
                .to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
