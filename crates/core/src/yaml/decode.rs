//! The serde decoder. The target type decides how scalars are read, so a text keeps its spelling
//! (`0.10` stays `0.10`) and YAML's guesses about types never matter.

use super::tree::{Content, Node, Position};
use crate::suggest::did_you_mean;
use serde::de::{self, DeserializeOwned, Visitor, value::StrDeserializer};
use std::cell::RefCell;
use std::fmt;

/// A value that does not fit, with its place and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    pub at: Option<Position>,
    pub message: String,
    pub hint: Option<String>,
    /// The keys that lead to the value, the innermost first.
    pub path: Vec<String>,
}

/// An unknown key, in a file where that is only a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub at: Position,
    pub message: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{at}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            at: None,
            message: message.to_string(),
            hint: None,
            path: Vec::new(),
        }
    }
}

impl DecodeError {
    fn at(mut self, node: &Node) -> Self {
        self.at.get_or_insert_with(|| node.at.clone());
        self
    }

    /// The value is below this key.
    fn under(mut self, key: &str) -> Self {
        self.path.push(key.to_owned());
        self
    }

    /// The keys that lead to the value, joined by dots; `None` for the whole.
    pub fn key(&self) -> Option<String> {
        let keys: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        (!keys.is_empty()).then(|| keys.join("."))
    }
}

impl From<DecodeError> for crate::Error {
    fn from(error: DecodeError) -> Self {
        let key = error.key();
        let mut told = Self::config(error.to_string()).maybe_hint(error.hint);
        if let Some(at) = error.at {
            told = told.at_place(at.line, at.column);
        }
        match key {
            Some(key) => told.about(key),
            None => told,
        }
    }
}

impl From<super::YamlError> for crate::Error {
    fn from(error: super::YamlError) -> Self {
        Self::config(error.to_string()).at_place(error.at.line, error.at.column)
    }
}

/// Decodes strictly: an unknown key is an error.
pub fn decode<T: DeserializeOwned>(node: &Node) -> Result<T, DecodeError> {
    T::deserialize(Decoder {
        node,
        warnings: None,
    })
}

/// Decodes leniently: unknown keys become warnings.
pub fn decode_leniently<T: DeserializeOwned>(
    node: &Node,
) -> Result<(T, Vec<Warning>), DecodeError> {
    let warnings = RefCell::new(Vec::new());
    let value = T::deserialize(Decoder {
        node,
        warnings: Some(&warnings),
    })?;
    Ok((value, warnings.into_inner()))
}

#[derive(Clone, Copy)]
struct Decoder<'n> {
    node: &'n Node,
    warnings: Option<&'n RefCell<Vec<Warning>>>,
}

impl<'n> Decoder<'n> {
    fn with(self, node: &'n Node) -> Self {
        Self { node, ..self }
    }

    fn wrong(&self, expected: &str) -> DecodeError {
        let found = match &self.node.content {
            Content::Scalar { .. } if self.node.is_null() => "nothing".to_owned(),
            Content::Scalar { text, .. } => format!("`{text}`"),
            Content::Sequence(_) => "a list".to_owned(),
            Content::Mapping(_) => "a mapping".to_owned(),
        };
        DecodeError {
            at: Some(self.node.at.clone()),
            message: format!("expected {expected}, found {found}"),
            hint: None,
            path: Vec::new(),
        }
    }

    fn number<T: std::str::FromStr>(&self, expected: &str) -> Result<T, DecodeError> {
        self.node
            .text()
            .and_then(|text| text.replace('_', "").parse().ok())
            .ok_or_else(|| self.wrong(expected))
    }

    /// Finds unknown keys here, because the known ones are at hand for a suggestion.
    fn unknown_keys(
        &self,
        entries: &[(Node, Node)],
        fields: &'static [&'static str],
    ) -> Result<(), DecodeError> {
        for (key, _) in entries {
            let name = key.text().unwrap_or_default();
            if fields.contains(&name) {
                continue;
            }
            let message = format!("unknown key `{name}`");
            let hint = did_you_mean(name, fields.iter().copied())
                .unwrap_or_else(|| format!("known here: {}", fields.join(", ")));
            match self.warnings {
                Some(warnings) => warnings.borrow_mut().push(Warning {
                    at: key.at.clone(),
                    message: format!("{message}: {hint}"),
                }),
                None => {
                    return Err(DecodeError {
                        at: Some(key.at.clone()),
                        message,
                        hint: Some(hint),
                        path: vec![name.to_owned()],
                    });
                }
            }
        }
        Ok(())
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty, $expected:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            visitor.$visit(self.number::<$type>($expected)?).map_err(|e: DecodeError| e.at(self.node))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Decoder<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.content {
            Content::Scalar { .. } if self.node.is_null() => visitor.visit_unit(),
            Content::Scalar { text, .. } => visitor.visit_str(text),
            Content::Sequence(items) => visitor.visit_seq(Items {
                decoder: self,
                items: items.iter(),
            }),
            Content::Mapping(entries) => visitor.visit_map(Entries {
                decoder: self,
                entries: entries.iter(),
                value: None,
                key: "",
            }),
        }
        .map_err(|error: DecodeError| error.at(self.node))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.text() {
            Some("true" | "True" | "TRUE") => visitor.visit_bool(true),
            Some("false" | "False" | "FALSE") => visitor.visit_bool(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    numbers! {
        deserialize_u8 visit_u8 u8, "a whole number up to 255";
        deserialize_u16 visit_u16 u16, "a whole number up to 65535";
        deserialize_u32 visit_u32 u32, "a whole number";
        deserialize_u64 visit_u64 u64, "a whole number";
        deserialize_i32 visit_i32 i32, "a whole number";
        deserialize_i64 visit_i64 i64, "a whole number";
        deserialize_f64 visit_f64 f64, "a number";
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.text() {
            Some(text) if !self.node.is_null() => visitor
                .visit_str(text)
                .map_err(|error: DecodeError| error.at(self.node)),
            _ => Err(self.wrong("a text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.node.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.content {
            Content::Sequence(_) => self.deserialize_any(visitor),
            Content::Scalar { .. } if !self.node.is_null() => Err(DecodeError {
                hint: Some("one alone is a list too: put it into brackets, `[…]`".to_owned()),
                ..self.wrong("a list")
            }),
            _ => Err(self.wrong("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.content {
            Content::Mapping(_) => self.deserialize_any(visitor),
            _ => Err(self.wrong("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let Content::Mapping(entries) = &self.node.content else {
            return Err(self.wrong("a mapping"));
        };
        self.unknown_keys(entries, fields)?;
        let known: Vec<_> = entries
            .iter()
            .filter(|(key, _)| key.text().is_some_and(|name| fields.contains(&name)))
            .collect();
        visitor
            .visit_map(Fields {
                decoder: self,
                entries: known.into_iter(),
                value: None,
                key: "",
            })
            .map_err(|error: DecodeError| error.at(self.node))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let Some(text) = self.node.text() else {
            return Err(self.wrong(&format!("one of {}", variants.join(", "))));
        };
        if !variants.contains(&text) {
            return Err(DecodeError {
                hint: did_you_mean(text, variants.iter().copied()),
                ..self.wrong(&format!("one of {}", variants.join(", ")))
            });
        }
        visitor
            .visit_enum(de::IntoDeserializer::<DecodeError>::into_deserializer(text))
            .map_err(|e: DecodeError| e.at(self.node))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i8 i16 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier }
}

struct Items<'n> {
    decoder: Decoder<'n>,
    items: std::slice::Iter<'n, Node>,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = DecodeError;
    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        self.items
            .next()
            .map(|item| {
                seed.deserialize(self.decoder.with(item))
                    .map_err(|error| error.at(item))
            })
            .transpose()
    }
}

macro_rules! map_access {
    ($name:ident, $iterator:ty) => {
        struct $name<'n> {
            decoder: Decoder<'n>,
            entries: $iterator,
            value: Option<&'n Node>,
            key: &'n str,
        }
        impl<'de, 'n> de::MapAccess<'de> for $name<'n> {
            type Error = DecodeError;
            fn next_key_seed<K: de::DeserializeSeed<'de>>(
                &mut self,
                seed: K,
            ) -> Result<Option<K::Value>, DecodeError> {
                let Some((key, value)) = self.entries.next() else {
                    return Ok(None);
                };
                self.value = Some(value);
                self.key = key.text().unwrap_or_default();
                let name: StrDeserializer<'_, DecodeError> =
                    de::IntoDeserializer::into_deserializer(self.key);
                seed.deserialize(name)
                    .map(Some)
                    .map_err(|error| error.at(key))
            }
            fn next_value_seed<V: de::DeserializeSeed<'de>>(
                &mut self,
                seed: V,
            ) -> Result<V::Value, DecodeError> {
                let value = self
                    .value
                    .take()
                    .expect("serde asks for a key before its value");
                seed.deserialize(self.decoder.with(value))
                    .map_err(|error| error.at(value).under(self.key))
            }
        }
    };
}
map_access!(Entries, std::slice::Iter<'n, (Node, Node)>);
map_access!(Fields, std::vec::IntoIter<&'n (Node, Node)>);

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, rename_all = "snake_case")]
    enum Tier {
        Premium,
        Basic,
    }

    #[derive(Debug, Deserialize, PartialEq, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Sample {
        nodes: u32,
        env: BTreeMap<String, String>,
        tier: Option<Tier>,
        list: Vec<String>,
    }

    fn read(text: &str) -> Result<Sample, DecodeError> {
        decode(&parse("job.yaml", text).expect("YAML"))
    }

    #[test]
    fn spelling_is_kept_and_types_are_what_the_key_asks_for() {
        let sample =
            read("nodes: 4\nenv: {A: 0, B: 0.10, C: no, D: 'x y'}\ntier: basic\nlist: [1e-4, 007]")
                .expect("decodes");
        assert_eq!(sample.nodes, 4);
        assert_eq!(sample.env["B"], "0.10");
        assert_eq!(sample.env["C"], "no");
        assert_eq!(sample.list, ["1e-4", "007"]);
        assert_eq!(sample.tier, Some(Tier::Basic));
    }

    #[test]
    fn mistakes_name_line_column_and_remedy() {
        for (text, message, hint) in [
            (
                "nodes: 4\nnoeds: 5",
                "job.yaml:2:1: unknown key `noeds`",
                Some("did you mean `nodes`?"),
            ),
            (
                "nodes: many",
                "job.yaml:1:8: expected a whole number, found `many`",
                None,
            ),
            (
                "tier: basik",
                "job.yaml:1:7: expected one of premium, basic, found `basik`",
                Some("did you mean `basic`?"),
            ),
            (
                "list: x",
                "job.yaml:1:7: expected a list, found `x`",
                Some("one alone is a list too: put it into brackets, `[…]`"),
            ),
            (
                "env:\n  A: [1]",
                "job.yaml:2:6: expected a text, found a list",
                None,
            ),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.to_string(), message);
            assert_eq!(error.hint.as_deref(), hint);
        }
        let twice = parse("f", "a: 1\na: 2").expect_err("a key given twice");
        assert_eq!(
            twice.to_string(),
            "f:2:1: `a` is given twice, first in line 1"
        );
    }

    #[test]
    fn unknown_keys_can_be_warnings() {
        let node = parse("config.yaml", "nodes: 1\nnods: 2").expect("YAML");
        let (sample, warnings) = decode_leniently::<Sample>(&node).expect("decodes");
        assert_eq!(sample.nodes, 1);
        assert_eq!(
            warnings[0].message,
            "unknown key `nods`: did you mean `nodes`?"
        );
    }

    #[test]
    fn small_files_cannot_grow_without_bound() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..9 {
            let alias = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 10].join(","));
        }
        assert!(
            parse("bomb", &bomb)
                .expect_err("too large")
                .message
                .contains("more than")
        );
        assert!(parse("deep", &"[".repeat(5_000)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses_or_errs(text in ".{0,200}") {
            if let Ok(node) = parse("soup", &text) {
                let _ = decode::<Sample>(&node);
            }
        }
    }

    #[test]
    fn a_switch_is_a_word_of_yaml_and_nothing_is_called_nothing() {
        let switch = |text: &str| {
            let node = parse("f", text).expect("YAML");
            decode::<bool>(&node).map_err(|error| error.to_string())
        };
        for (text, value) in [
            ("true", true),
            ("True", true),
            ("false", false),
            ("FALSE", false),
        ] {
            assert_eq!(switch(text), Ok(value), "{text}");
        }
        let nothing = decode::<Vec<bool>>(&parse("f", "[~]").expect("YAML"));
        let error = nothing.expect_err("no switch").to_string();
        assert!(error.contains("found nothing"), "{error}");
        assert!(
            switch("yes")
                .expect_err("no switch")
                .contains("found `yes`")
        );
    }
}
