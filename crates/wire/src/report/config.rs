//! The answers of `tow config`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What is configured.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigValues {
    /// The values, in the order of keys.
    pub values: Vec<ConfigValue>,
}

/// A configured value.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigValue {
    /// Its key: `clusters.lab.host`.
    pub key: String,
    /// The value as text.
    pub value: String,
    /// Where it is written: file, line and column, a variable, or `default`.
    pub origin: String,
}

/// The JSON Schema of the job file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct JobFileSchema(pub Value);
