//! The container image of a job.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// An image for every node, or one per make of GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    Any(String),
    PerMake(BTreeMap<String, String>),
}

impl Serialize for Image {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any(name) => serializer.serialize_str(name),
            Self::PerMake(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrPerMake;
        impl<'de> Visitor<'de> for OneOrPerMake {
            type Value = Image;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an image name or {nvidia: …, amd: …}")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Image, E> {
                Ok(Image::Any(name.to_owned()))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Image, A::Error> {
                let mut names = BTreeMap::new();
                while let Some((make, name)) = entries.next_entry::<String, String>()? {
                    if make != "nvidia" && make != "amd" {
                        return Err(de::Error::custom(format!(
                            "unknown make `{make}`: nvidia or amd"
                        )));
                    }
                    names.insert(make, name);
                }
                Ok(Image::PerMake(names))
            }
        }
        deserializer.deserialize_any(OneOrPerMake)
    }
}

impl JsonSchema for Image {
    fn schema_name() -> Cow<'static, str> {
        "Image".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "object", "properties": { "nvidia": { "type": "string" }, "amd": { "type": "string" } }, "additionalProperties": false }
        ]})
    }
}
