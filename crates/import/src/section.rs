//! Reading a mapping of another tool. Values are read by type, and the keys that were never read
//! are reported at the end.

use super::Report;
use std::cell::RefCell;
use std::collections::BTreeSet;
use towline_core::yaml::{Content, Node, Position};
use towline_core::{Error, Result};

/// An error that names file, line and column.
pub(super) fn wrong(at: &Position, message: impl std::fmt::Display) -> Error {
    Error::config(format!("{at}: {message}"))
}

/// A mapping, its path from the top of the file, and the keys that were read.
pub(super) struct Section<'n> {
    node: &'n Node,
    path: String,
    read_keys: RefCell<BTreeSet<String>>,
}

impl<'n> Section<'n> {
    pub(super) fn new(node: &'n Node, path: &str) -> Result<Self> {
        if !matches!(node.content, Content::Mapping(_)) {
            let what = if path.is_empty() {
                "the file".to_owned()
            } else {
                format!("`{path}`")
            };
            return Err(wrong(
                &node.at,
                format!("{what} must be a mapping of keys to values"),
            ));
        }
        Ok(Self {
            node,
            path: path.to_owned(),
            read_keys: RefCell::default(),
        })
    }

    pub(super) fn at(&self) -> &'n Position {
        &self.node.at
    }

    /// The key with the path before it.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The value, unless it is missing or null.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.read_keys.borrow_mut().insert(key.to_owned());
        self.node.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn section(&self, key: &str) -> Result<Option<Section<'n>>> {
        self.get(key)
            .map(|node| Section::new(node, &self.key(key)))
            .transpose()
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'n str>> {
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        text(node, &self.key(key)).map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>> {
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        // The words of YAML 1.1, because the other tools read that.
        match node.text().map(str::to_ascii_lowercase).as_deref() {
            Some("true" | "yes" | "on" | "y") => Ok(Some(true)),
            Some("false" | "no" | "off" | "n") => Ok(Some(false)),
            _ => Err(wrong(
                &node.at,
                format!("`{}` must be true or false", self.key(key)),
            )),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u32>> {
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        let number = node
            .text()
            .and_then(|text| text.replace('_', "").parse().ok());
        number.map(Some).ok_or_else(|| {
            wrong(
                &node.at,
                format!("`{}` must be a whole number", self.key(key)),
            )
        })
    }

    /// A list, or one text of several lines.
    pub(super) fn lines(&self, key: &str) -> Result<Vec<&'n str>> {
        let Some(node) = self.get(key) else {
            return Ok(Vec::new());
        };
        match &node.content {
            Content::Sequence(items) => items
                .iter()
                .map(|item| whole(item, &self.key(key)))
                .collect(),
            Content::Scalar { text, .. } => Ok(text.lines().collect()),
            Content::Mapping(_) => Err(wrong(
                &node.at,
                format!("`{}` must be a list of lines", self.key(key)),
            )),
        }
    }

    /// The position of a key's value.
    pub(super) fn place(&self, key: &str) -> &'n Position {
        self.node.get(key).map_or(&self.node.at, |value| &value.at)
    }

    /// Every key and value, unread ones too.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'n str, &'n Node)> {
        let entries: &'n [(Node, Node)] = match &self.node.content {
            Content::Mapping(entries) => entries,
            _ => &[],
        };
        entries
            .iter()
            .filter_map(|(key, value)| Some((key.text()?, value)))
    }

    /// Keys with a value that were not read.
    pub(super) fn rest(&self) -> Vec<(&'n str, &'n Node)> {
        let read_keys = self.read_keys.borrow();
        self.entries()
            .filter(|(key, value)| !read_keys.contains(*key) && !value.is_null())
            .collect()
    }

    /// Whether any key of the mapping was read.
    pub(super) fn has_known(&self) -> bool {
        let read_keys = self.read_keys.borrow();
        self.entries().any(|(key, _)| read_keys.contains(key))
    }

    /// The position of a key itself.
    pub(super) fn key_place(&self, key: &str) -> &'n Position {
        let entries: &'n [(Node, Node)] = match &self.node.content {
            Content::Mapping(entries) => entries,
            _ => &[],
        };
        entries
            .iter()
            .find(|(known, _)| known.text() == Some(key))
            .map_or(&self.node.at, |(key, _)| &key.at)
    }

    /// Reports every key that was not read as empty or unknown, with a suggestion for a typing
    /// mistake.
    pub(super) fn report_unknown(&self, report: &mut Report, why: &str) {
        let read_keys = self.read_keys.borrow();
        for (key, value) in self.entries() {
            if value.is_null() {
                report.empty(self.key(key), self.key_place(key));
            } else if !read_keys.contains(key) {
                report.unknown_key(
                    &self.key(key),
                    self.key_place(key),
                    why,
                    read_keys.iter().map(String::as_str),
                );
            }
        }
    }
}

impl Section<'_> {
    /// Reports every key that no line of the report mentions as without effect. Called last.
    pub(super) fn report_unmentioned(&self, report: &mut Report) {
        for (key, value) in self.entries() {
            let key = self.key(key);
            let is_about = |reported: &str| {
                reported
                    .strip_prefix(&key)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':', '[']))
            };
            let lines = [&report.mapped, &report.not_needed, &report.not_mapped];
            if !lines.into_iter().flatten().any(|line| is_about(&line.key)) {
                report.not_needed(key, &value.at, "it changes nothing here");
            }
        }
    }
}

pub(super) fn text<'n>(node: &'n Node, key: &str) -> Result<&'n str> {
    whole(node, key).map(str::trim_end)
}

/// With trailing blanks.
fn whole<'n>(node: &'n Node, key: &str) -> Result<&'n str> {
    node.text()
        .filter(|_| !node.is_null())
        .ok_or_else(|| wrong(&node.at, format!("`{key}` must be a text")))
}
