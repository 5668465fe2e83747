//! New keys in the text of a YAML file, which keeps its comments and its order. The caller must
//! check the result, because YAML can be written in ways that this code does not know.

use super::yaml_text::value;
use serde_json::{Map, Value};
use towline_core::yaml::{self, Content, Node, Position};

/// The text, extended by everything of `new` that is missing in `existing`, its parsed form.
pub(super) fn insert(text: &str, existing: &Node, new: &Node) -> String {
    let text = if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    };
    let mut pieces = Vec::new();
    collect(&text, None, existing, new, &mut pieces);
    let mut made = text.clone();
    // From the end, so that earlier positions stay valid.
    pieces.sort_by_key(|(at, _)| *at);
    for (at, piece) in pieces.into_iter().rev() {
        made.insert_str(
            at,
            &if text.contains("\r\n") {
                piece.replace('\n', "\r\n")
            } else {
                piece
            },
        );
    }
    made
}

/// Collects the missing keys of one mapping and of those in it. `parent` is the key of the mapping.
fn collect(
    text: &str,
    parent: Option<&Node>,
    existing: &Node,
    new: &Node,
    pieces: &mut Vec<(usize, String)>,
) {
    let Content::Mapping(entries) = &new.content else {
        return;
    };
    let mut missing = Map::new();
    for (key, node) in entries {
        let Some(name) = key.text() else { continue };
        match (entry(existing, name), &node.content) {
            (None, _) => drop(missing.insert(name.to_owned(), value(node))),
            (Some((known, old)), Content::Mapping(_)) if old.is_null() => {
                if let Value::Object(values) = value(node) {
                    pieces.push((
                        line_end(text, known.at.line),
                        block(values, known.at.column + 1),
                    ));
                }
            }
            (Some((known, old)), _) => collect(text, Some(known), old, node, pieces),
        }
    }
    if !missing.is_empty() {
        pieces.push(piece(text, parent, existing, missing));
    }
}

fn entry<'n>(node: &'n Node, key: &str) -> Option<(&'n Node, &'n Node)> {
    match &node.content {
        Content::Mapping(entries) => entries
            .iter()
            .find(|(known, _)| known.text() == Some(key))
            .map(|(known, value)| (known, value)),
        _ => None,
    }
}

/// The position and the text of the missing keys of one mapping.
fn piece(
    text: &str,
    parent: Option<&Node>,
    existing: &Node,
    missing: Map<String, Value>,
) -> (usize, String) {
    let Content::Mapping(entries) = &existing.content else {
        return (text.len(), block(missing, 0));
    };
    if let Some(begin) = offset(text, &existing.at).filter(|begin| text[*begin..].starts_with('{'))
    {
        let inline = yaml::write_inline(&Value::Object(missing));
        let inline = inline
            .strip_prefix('{')
            .and_then(|inline| inline.strip_suffix('}'))
            .unwrap_or_default();
        return (
            begin + 1,
            if entries.is_empty() {
                inline.to_owned()
            } else {
                format!("{inline}, ")
            },
        );
    }
    let after = parent.map_or(0, |parent| parent.at.line);
    let first = entries
        .iter()
        .map(|(key, _)| &key.at)
        .find(|at| at.line > after);
    let indent = first.map_or_else(
        || parent.map_or(0, |parent| parent.at.column + 1),
        |at| at.column - 1,
    );
    let at = parent.map_or(text.len(), |parent| line_end(text, parent.at.line));
    (at, block(missing, indent))
}

fn block(values: Map<String, Value>, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let text = yaml::write(&Value::Object(values));
    text.lines()
        .map(|line| {
            if line.is_empty() {
                "\n".to_owned()
            } else {
                format!("{pad}{line}\n")
            }
        })
        .collect()
}

/// The byte after the end of a line, counted from 1.
fn line_end(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line).map(str::len).sum()
}

/// The byte of a position; `None` if it has none.
fn offset(text: &str, at: &Position) -> Option<usize> {
    let begin = line_end(text, at.line.checked_sub(1)?);
    let (byte, _) = text[begin..]
        .char_indices()
        .nth(at.column.checked_sub(1)?)?;
    Some(begin + byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_inserted(text: &str, new: &str, made: &str) {
        let parsed = |text: &str| yaml::parse("x", text).expect("YAML");
        assert_eq!(insert(text, &parsed(text), &parsed(new)), made);
        let mut expected = parsed(text);
        expected.overlay(parsed(new));
        assert_eq!(value(&parsed(made)), value(&expected));
    }

    #[test]
    fn new_keys_go_below_their_parents_and_comments_stay() {
        let text = "# mine\nclusters:   # all\n    # the lab\n    lab: \
            {kind: slurm}\n    box:\n      kind: local # here\nfolders:\n";
        let new = "clusters: {lab: {host: l}, box: {gpus: 2}, sc: {kind: philly}}\nfolders: \
            {data: {path: x}}\nsync: {path: y}\n";
        let made = "# mine\nclusters:   # all\n    sc:\n      kind: philly\n    # the \
            lab\n    lab: {host: l, kind: slurm}\n    box:\n      gpus: 2\n      kind: local # \
                here\nfolders:\n  data:\n    path: x\nsync:\n  path: y\n";
        assert_inserted(text, new, made);
        assert_inserted("", "a: {b: 1}", "a:\n  b: 1\n");
        assert_inserted("# only this", "a: 1", "# only this\na: 1\n");
        assert_inserted("a: {}", "a: {b: 'c: d'}\ne: f", "a: {b: \"c: d\"}\ne: f\n");
        assert_inserted("{a: {x: é}}", "a: {y: {z: 1}}", "{a: {y: {z: 1}, x: é}}\n");
        assert_inserted(
            "a:\r\n  b: 1\r\n",
            "a: {c: 2}",
            "a:\r\n  c: 2\r\n  b: 1\r\n",
        );
    }
}
