//! How many ranks a job starts on each node.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Ranks per node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Launch {
    #[default]
    PerNode,
    PerGpu,
    Once,
    Ranks(u32),
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerNode => f.write_str("per_node"),
            Self::PerGpu => f.write_str("per_gpu"),
            Self::Once => f.write_str("once"),
            Self::Ranks(ranks) => write!(f, "{ranks}"),
        }
    }
}

impl std::str::FromStr for Launch {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "per_node" => Ok(Self::PerNode),
            "per_gpu" => Ok(Self::PerGpu),
            "once" => Ok(Self::Once),
            _ => match text.parse() {
                Ok(ranks @ 1..=4096) => Ok(Self::Ranks(ranks)),
                _ => Err(format!(
                    "`{text}` is not a launch: per_node, per_gpu, once, or ranks per node from 1 \
                        to 4096"
                )),
            },
        }
    }
}

impl Serialize for Launch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Launch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Launch {
    fn schema_name() -> Cow<'static, str> {
        "Launch".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // A job file has a number as a number; a job that is printed has it as text.
        let ranks = if generator.contract().is_serialize() {
            json_schema!({ "type": "string", "pattern": "^[0-9]+$" })
        } else {
            json_schema!({ "type": "integer", "minimum": 1, "maximum": 4096 })
        };
        json_schema!({ "anyOf": [{ "enum": ["per_node", "per_gpu", "once"] }, ranks] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_a_job_file_takes_a_word_or_a_number() {
        let settings = schemars::generate::SchemaSettings::draft07();
        let schema = Launch::json_schema(&mut settings.into_generator()).to_value();
        assert_eq!(schema["anyOf"][0]["enum"][1], "per_gpu");
        assert_eq!(schema["anyOf"][1]["type"], "integer");
    }
}
