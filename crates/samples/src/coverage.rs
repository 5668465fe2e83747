//! Which fields and variants the samples of a file have, found out while they are decoded: a
//! derived `Deserialize` tells its deserializer the names of all fields and variants.
//!
//! A type that serde reads through a buffer (`tag`, `untagged`, `flatten`) does not tell them, and
//! is not covered here.

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor,
};
use serde_json::{Error, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

type Names = &'static [&'static str];

/// Names of fields and variants that were seen, by type.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    seen: BTreeMap<(String, Names), BTreeSet<String>>,
    skipped: BTreeSet<String>,
}

impl Coverage {
    pub(crate) fn skip(&mut self, name: &str) {
        self.skipped.insert(name.to_owned());
    }

    fn note<'a>(&mut self, name: String, all: Names, found: impl Iterator<Item = &'a String>) {
        self.seen
            .entry((name, all))
            .or_default()
            .extend(found.cloned());
    }

    /// What no sample has, as `Type.field`.
    pub(crate) fn missing(&self) -> Vec<String> {
        let of_type = |((name, all), seen): (&(String, Names), &BTreeSet<String>)| {
            let missing = all.iter().filter(|part| !seen.contains(**part));
            missing
                .map(|part| format!("{name}.{part}"))
                .collect::<Vec<_>>()
        };
        self.seen.iter().flat_map(of_type).collect()
    }
}

/// A JSON value that notes what is read of it.
#[derive(Clone, Copy)]
pub(crate) struct Traced<'de> {
    value: &'de Value,
    coverage: &'de RefCell<Coverage>,
}

impl<'de> Traced<'de> {
    pub(crate) const fn new(value: &'de Value, coverage: &'de RefCell<Coverage>) -> Self {
        Self { value, coverage }
    }

    const fn of(self, value: &'de Value) -> Self {
        Self {
            value,
            coverage: self.coverage,
        }
    }

    fn is_skipped(self, name: &str) -> bool {
        self.coverage.borrow().skipped.contains(name)
    }

    fn note_fields(self, name: String, fields: Names) {
        let found = self
            .value
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys);
        self.coverage.borrow_mut().note(name, fields, found);
    }
}

impl<'de> IntoDeserializer<'de, Error> for Traced<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Traced<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(|item| self.of(item))))
            }
            Value::Object(map) => {
                let entries = map
                    .iter()
                    .map(|(key, value)| (key.as_str(), self.of(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: Names,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.is_skipped(name) {
            return self.value.deserialize_struct(name, fields, visitor);
        }
        self.note_fields(name.to_owned(), fields);
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: Names,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.is_skipped(name) {
            return self.value.deserialize_enum(name, variants, visitor);
        }
        let (variant, content) = match self.value {
            Value::Object(map) => map.iter().next().expect("a variant has a name"),
            word => return self.unit_variant(name, variants, word, visitor),
        };
        self.coverage
            .borrow_mut()
            .note(name.to_owned(), variants, std::iter::once(variant));
        visitor.visit_enum(Variant {
            name,
            variant,
            content: self.of(content),
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> Traced<'de> {
    fn unit_variant<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: Names,
        word: &'de Value,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Value::String(variant) = word {
            self.coverage
                .borrow_mut()
                .note(name.to_owned(), variants, std::iter::once(variant));
        }
        word.deserialize_enum(name, variants, visitor)
    }
}

/// A variant that has content.
struct Variant<'de> {
    name: &'static str,
    variant: &'de String,
    content: Traced<'de>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let word: StrDeserializer<'_, Error> = self.variant.as_str().into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;
    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.content)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.content.deserialize_any(visitor)
    }
    fn struct_variant<V: Visitor<'de>>(self, fields: Names, visitor: V) -> Result<V::Value, Error> {
        self.content
            .note_fields(format!("{}.{}", self.name, self.variant), fields);
        self.content.deserialize_any(visitor)
    }
}
