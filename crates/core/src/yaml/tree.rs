//! The tree: scalars keep their spelling, every node its place.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Deeper nesting than this is not a job file.
const MAX_NESTING: usize = 48;
/// More nodes than this, aliases expanded, is not a job file.
const MAX_NODES: usize = 200_000;

/// The position of a value: a file (or `TOW_…` variable, or flag) and its line and column, both
/// from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub source: Arc<str>,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            f.write_str(&self.source)
        } else {
            write!(f, "{}:{}:{}", self.source, self.line, self.column)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The text as written; `plain` when it stood without quotes.
    Scalar {
        text: String,
        plain: bool,
    },
    Sequence(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub content: Content,
    pub at: Position,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct YamlError {
    pub at: Position,
    pub message: String,
}

impl Node {
    pub fn scalar(text: impl Into<String>, at: Position) -> Self {
        Self {
            content: Content::Scalar {
                text: text.into(),
                plain: true,
            },
            at,
        }
    }
    pub fn sequence(items: Vec<Self>, at: Position) -> Self {
        Self {
            content: Content::Sequence(items),
            at,
        }
    }
    pub fn mapping(at: Position) -> Self {
        Self {
            content: Content::Mapping(Vec::new()),
            at,
        }
    }
    /// Puts a value at a path of keys, in place of the present one.
    pub fn put(&mut self, path: &[&str], value: Self) {
        let at = value.at.clone();
        let layer = path.iter().rev().fold(value, |node, key| Self {
            content: Content::Mapping(vec![(Self::scalar(*key, at.clone()), node)]),
            at: at.clone(),
        });
        self.overlay(layer);
    }
    pub fn empty_mapping(source: &str) -> Self {
        Self {
            content: Content::Mapping(Vec::new()),
            at: Position {
                source: source.into(),
                line: 0,
                column: 0,
            },
        }
    }
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
    /// `null`, `~` or nothing, unquoted.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Mapping(entries) => entries
                .iter()
                .find(|(k, _)| k.text() == Some(key))
                .map(|(_, v)| v),
            _ => None,
        }
    }

    /// Takes out the value at a path of keys. `false` if there is none.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let Content::Mapping(entries) = &mut self.content else {
            return false;
        };
        let Some((first, rest)) = path.split_first() else {
            return false;
        };
        let place = entries
            .iter()
            .position(|(key, _)| key.text() == Some(*first));
        match place {
            None => false,
            // The path may lead into a value that is no mapping: all of it is taken out then.
            Some(place) => {
                let is_below = !rest.is_empty() && entries[place].1.remove(rest);
                if !is_below {
                    entries.remove(place);
                }
                true
            }
        }
    }

    /// Merges `over` on top: mappings merge key by key, everything else is replaced.
    pub fn overlay(&mut self, over: Self) {
        match (&mut self.content, over.content) {
            (Content::Mapping(base), Content::Mapping(entries)) => {
                for (key, value) in entries {
                    match base.iter_mut().find(|(k, _)| k.text() == key.text()) {
                        Some((known, old)) => {
                            *known = key;
                            old.overlay(value);
                        }
                        None => base.push((key, value)),
                    }
                }
            }
            (content, new) => {
                *content = new;
                self.at = over.at;
            }
        }
    }
}

/// Parses one YAML document. An empty text is an empty mapping.
pub fn parse(source: &str, text: &str) -> Result<Node, YamlError> {
    let mut builder = Builder {
        source: source.into(),
        anchors: HashMap::new(),
        nodes: 0,
    };
    let mut events = Parser::new_from_str(text);
    let mut document = None;
    while let Some((event, span)) = builder.next(&mut events)? {
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) | Event::DocumentEnd | Event::StreamStart | Event::Nothing => {}
            _ if document.is_some() => {
                return Err(builder.error(
                    span,
                    "a second document begins here; one file holds \
                    one",
                ));
            }
            event => document = Some(builder.node(event, span, &mut events, 0)?),
        }
    }
    match document {
        Some(node) if !node.is_null() => Ok(node),
        _ => Ok(Node::empty_mapping(source)),
    }
}

type Events<'t> = Parser<'t, saphyr_parser::StrInput<'t>>;

struct Builder {
    source: Arc<str>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl Builder {
    fn position(&self, span: Span) -> Position {
        Position {
            source: self.source.clone(),
            line: span.start.line(),
            column: span.start.col() + 1,
        }
    }

    fn error(&self, span: Span, message: impl Into<String>) -> YamlError {
        YamlError {
            at: self.position(span),
            message: message.into(),
        }
    }

    fn next<'t>(&self, events: &mut Events<'t>) -> Result<Option<(Event<'t>, Span)>, YamlError> {
        match events.next() {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(problem)) => {
                let mark = *problem.marker();
                let what = if self.source.ends_with(".json") {
                    "JSON"
                } else {
                    "YAML"
                };
                Err(self.error(
                    Span::empty(mark),
                    format!("not valid {what}: {}", problem.info()),
                ))
            }
        }
    }

    fn node<'t>(
        &mut self,
        event: Event<'t>,
        span: Span,
        events: &mut Events<'t>,
        depth: usize,
    ) -> Result<Node, YamlError> {
        if depth > MAX_NESTING {
            return Err(self.error(span, format!("nested deeper than {MAX_NESTING} levels")));
        }
        self.count(1, span)?;
        let before = self.nodes;
        let at = self.position(span);
        if let Event::Scalar(.., Some(tag))
        | Event::SequenceStart(_, Some(tag))
        | Event::MappingStart(_, Some(tag)) = &event
        {
            self.plain_tag(tag, span)?;
        }
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (
                Content::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                },
                anchor,
            ),
            Event::SequenceStart(anchor, _) => {
                (Content::Sequence(self.items(events, depth)?), anchor)
            }
            Event::MappingStart(anchor, _) => {
                (Content::Mapping(self.entries(events, depth)?), anchor)
            }
            Event::Alias(id) => {
                let (node, size) = self
                    .anchors
                    .get(&id)
                    .cloned()
                    .ok_or_else(|| self.error(span, "an alias to nothing"))?;
                self.count(size, span)?;
                return Ok(node);
            }
            _ => return Err(self.error(span, "a value is missing here")),
        };
        let node = Node { content, at };
        if anchor > 0 {
            self.anchors
                .insert(anchor, (node.clone(), self.nodes - before + 1));
        }
        Ok(node)
    }

    /// A tag may only name a plain type. One that would make an object is refused.
    fn plain_tag(&self, tag: &Tag, span: Span) -> Result<(), YamlError> {
        let is_plain = tag.is_yaml_core_schema()
            && matches!(
                tag.suffix.as_str(),
                "str" | "int" | "float" | "bool" | "null" | "map" | "seq"
            );
        let shown = if tag.is_yaml_core_schema() {
            format!("!!{}", tag.suffix)
        } else {
            tag.to_string()
        };
        if is_plain {
            Ok(())
        } else {
            Err(self.error(
                span,
                format!(
                    "a value with the tag `{shown}`: only plain values are \
                read, nothing is made from them"
                ),
            ))
        }
    }

    /// Counts nodes with aliases expanded, so that ten lines cannot grow to gigabytes.
    fn count(&mut self, nodes: usize, span: Span) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            Err(self.error(span, format!("more than {MAX_NODES} values")))
        } else {
            Ok(())
        }
    }

    fn items(&mut self, events: &mut Events<'_>, depth: usize) -> Result<Vec<Node>, YamlError> {
        let mut items = Vec::new();
        while let Some((event, span)) = self.next(events)? {
            if event == Event::SequenceEnd {
                break;
            }
            items.push(self.node(event, span, events, depth + 1)?);
        }
        Ok(items)
    }

    fn entries(
        &mut self,
        events: &mut Events<'_>,
        depth: usize,
    ) -> Result<Vec<(Node, Node)>, YamlError> {
        let mut entries: Vec<(Node, Node)> = Vec::new();
        let (mut merge, mut merged): (Option<Node>, Vec<(Node, Node)>) = (None, Vec::new());
        while let Some((event, span)) = self.next(events)? {
            if event == Event::MappingEnd {
                break;
            }
            let key = self.node(event, span, events, depth + 1)?;
            let Some(name) = key.text() else {
                return Err(self.error(span, "a key must be a plain word"));
            };
            let is_merge = key.content
                == Content::Scalar {
                    text: "<<".to_owned(),
                    plain: true,
                };
            let twice = entries
                .iter()
                .map(|(known, _)| known)
                .chain(&merge)
                .find(|known| known.text() == Some(name));
            if let Some(first) = twice {
                return Err(self.error(
                    span,
                    format!("`{name}` is given twice, first in line {}", first.at.line),
                ));
            }
            let Some((event, span)) = self.next(events)? else {
                break;
            };
            let value = self.node(event, span, events, depth + 1)?;
            if is_merge {
                merged = self.merged(value, span)?;
                merge = Some(key);
            } else {
                entries.push((key, value));
            }
        }
        // Keys of the mapping itself count more than those of `<<`, in any order.
        merged.retain(|(key, _)| !entries.iter().any(|(own, _)| own.text() == key.text()));
        merged.append(&mut entries);
        Ok(merged)
    }

    /// The entries of `<<`: those of one mapping, or of several, where the earlier ones count.
    fn merged(&self, value: Node, span: Span) -> Result<Vec<(Node, Node)>, YamlError> {
        let sources = match value.content {
            Content::Sequence(items) => items,
            _ => vec![value],
        };
        let mut merged: Vec<(Node, Node)> = Vec::new();
        for source in sources {
            let Content::Mapping(entries) = source.content else {
                return Err(self.error(
                    span,
                    "`<<` takes a mapping or a list of mappings, as in `<<: *base`",
                ));
            };
            for (key, value) in entries {
                if !merged.iter().any(|(known, _)| known.text() == key.text()) {
                    merged.push((key, value));
                }
            }
        }
        Ok(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf<'n>(tree: &'n Node, path: &[&str]) -> &'n Node {
        path.iter()
            .fold(tree, |node, key| node.get(key).expect("there"))
    }

    #[test]
    fn merge_keys_bring_what_is_not_written_out() {
        let text = "base: &base {a: 1, b: {c: 2}}\nmore: &more {a: 8, d: 9}\none: \
            {a: 5, <<: *base}\ntwo:\n  <<: [*base, *more]\n  b: 7\nthree:\n  <<: {x: 1}\n'<<': \
                kept\n";
        let tree = parse("x", text).expect("parses");
        for (path, word) in [
            ("one.a", "5"),
            ("one.b.c", "2"),
            ("two.a", "1"),
            ("two.b", "7"),
            ("two.d", "9"),
            ("three.x", "1"),
        ] {
            assert_eq!(
                leaf(&tree, &path.split('.').collect::<Vec<_>>()).text(),
                Some(word),
                "{path}"
            );
        }
        assert_eq!(leaf(&tree, &["one", "b", "c"]).at.to_string(), "x:1:27");
        assert!(leaf(&tree, &["two"]).get("<<").is_none());
        assert_eq!(leaf(&tree, &["<<"]).text(), Some("kept"));
    }

    #[test]
    fn a_merge_key_with_anything_else_is_an_error_with_its_place() {
        for (text, place) in [
            ("a:\n  <<: word\n", "x:2:7: `<<`"),
            ("<<: [{a: 1}, 2]\n", "x:1:5: `<<`"),
            ("<<: {a: 1}\n<<: {b: 1}\n", "x:2:1: `<<` is given twice"),
        ] {
            let error = parse("x", text).expect_err("refused").to_string();
            assert!(error.starts_with(place), "{error}");
        }
        let mut text = String::from("a0: &a0 {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8}\n");
        for level in 1..8 {
            text += &format!(
                "a{level}: &a{level} {{<<: {{{}}}}}\n",
                (0..8)
                    .map(|key| format!("k{key}: *a{}", level - 1))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        assert!(
            parse("x", &text)
                .expect_err("too many")
                .message
                .contains("values")
        );
    }

    #[test]
    fn a_value_is_put_at_its_path_and_others_stay() {
        let mut tree = parse("x", "a: {b: 1, c: 2}\n").expect("YAML");
        let at = tree.at.clone();
        tree.put(&["a", "c"], Node::scalar("3", at.clone()));
        tree.put(&["d"], Node::scalar("4", at));
        for (path, text) in [("a.b", "1"), ("a.c", "3"), ("d", "4")] {
            let path: Vec<&str> = path.split('.').collect();
            assert_eq!(leaf(&tree, &path).text(), Some(text), "{path:?}");
        }
        let Content::Mapping(entries) = &leaf(&tree, &["a"]).content else {
            panic!("a mapping");
        };
        assert_eq!(entries.len(), 2);
    }
}
