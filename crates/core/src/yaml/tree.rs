//! The tree: scalars keep their spelling, every node its place.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Deeper nesting than this is not a job file.
const DEPTH: usize = 48;
/// More nodes than this, aliases expanded, is not a job file.
const NODES: usize = 200_000;

/// Where a value was written: a file (or `TOW_…` variable, or flag) and its line and column, both from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub source: Arc<str>,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str(&self.source) } else { write!(f, "{}:{}:{}", self.source, self.line, self.column) }
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
        Self { content: Content::Scalar { text: text.into(), plain: true }, at }
    }
    pub fn sequence(items: Vec<Self>, at: Position) -> Self {
        Self { content: Content::Sequence(items), at }
    }
    pub fn mapping(at: Position) -> Self {
        Self { content: Content::Mapping(Vec::new()), at }
    }
    /// Puts a value at a path of keys, over what is there.
    pub fn put(&mut self, path: &[&str], value: Self) {
        let at = value.at.clone();
        let layer = path.iter().rev().fold(value, |node, key| Self { content: Content::Mapping(vec![(Self::scalar(*key, at.clone()), node)]), at: at.clone() });
        self.overlay(layer);
    }
    pub fn empty_mapping(source: &str) -> Self {
        Self { content: Content::Mapping(Vec::new()), at: Position { source: source.into(), line: 0, column: 0 } }
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
            Content::Mapping(entries) => entries.iter().find(|(k, _)| k.text() == Some(key)).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Lays `over` on top: mappings merge key by key, everything else is replaced.
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
    let mut builder = Builder { source: source.into(), anchors: HashMap::new(), nodes: 0 };
    let mut events = Parser::new_from_str(text);
    let mut document = None;
    while let Some((event, span)) = builder.next(&mut events)? {
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) | Event::DocumentEnd | Event::StreamStart | Event::Nothing => {}
            _ if document.is_some() => return Err(builder.error(span, "a second document begins here; one file holds one")),
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
        Position { source: self.source.clone(), line: span.start.line(), column: span.start.col() + 1 }
    }

    fn error(&self, span: Span, message: impl Into<String>) -> YamlError {
        YamlError { at: self.position(span), message: message.into() }
    }

    fn next<'t>(&self, events: &mut Events<'t>) -> Result<Option<(Event<'t>, Span)>, YamlError> {
        match events.next() {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(problem)) => {
                let mark = *problem.marker();
                let what = if self.source.ends_with(".json") { "JSON" } else { "YAML" };
                Err(self.error(Span::empty(mark), format!("not valid {what}: {}", problem.info())))
            }
        }
    }

    fn node<'t>(&mut self, event: Event<'t>, span: Span, events: &mut Events<'t>, depth: usize) -> Result<Node, YamlError> {
        if depth > DEPTH {
            return Err(self.error(span, format!("nested deeper than {DEPTH} levels")));
        }
        self.count(1, span)?;
        let before = self.nodes;
        let at = self.position(span);
        if let Event::Scalar(.., Some(tag)) | Event::SequenceStart(_, Some(tag)) | Event::MappingStart(_, Some(tag)) = &event {
            self.plain_tag(tag, span)?;
        }
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (Content::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }, anchor),
            Event::SequenceStart(anchor, _) => (Content::Sequence(self.items(events, depth)?), anchor),
            Event::MappingStart(anchor, _) => (Content::Mapping(self.entries(events, depth)?), anchor),
            Event::Alias(id) => {
                let (node, size) = self.anchors.get(&id).cloned().ok_or_else(|| self.error(span, "an alias to nothing"))?;
                self.count(size, span)?;
                return Ok(node);
            }
            _ => return Err(self.error(span, "a value is missing here")),
        };
        let node = Node { content, at };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - before + 1));
        }
        Ok(node)
    }

    /// A tag may only say what is a plain value anyway; one that would make an object is refused.
    fn plain_tag(&self, tag: &Tag, span: Span) -> Result<(), YamlError> {
        let is_plain = tag.is_yaml_core_schema() && matches!(tag.suffix.as_str(), "str" | "int" | "float" | "bool" | "null" | "map" | "seq");
        let shown = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
        if is_plain { Ok(()) } else { Err(self.error(span, format!("a value with the tag `{shown}`: only plain values are read, nothing is made from them"))) }
    }

    /// Counts nodes with aliases expanded, so that ten lines cannot grow to gigabytes.
    fn count(&mut self, nodes: usize, span: Span) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > NODES { Err(self.error(span, format!("more than {NODES} values"))) } else { Ok(()) }
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

    fn entries(&mut self, events: &mut Events<'_>, depth: usize) -> Result<Vec<(Node, Node)>, YamlError> {
        let mut entries: Vec<(Node, Node)> = Vec::new();
        while let Some((event, span)) = self.next(events)? {
            if event == Event::MappingEnd {
                break;
            }
            let key = self.node(event, span, events, depth + 1)?;
            let Some(name) = key.text() else {
                return Err(self.error(span, "a key must be a plain word"));
            };
            if let Some((first, _)) = entries.iter().find(|(k, _)| k.text() == Some(name)) {
                return Err(self.error(span, format!("`{name}` is given twice, first in line {}", first.at.line)));
            }
            let Some((event, span)) = self.next(events)? else { break };
            let value = self.node(event, span, events, depth + 1)?;
            entries.push((key, value));
        }
        Ok(entries)
    }
}
