//! One request, parsed.

use super::answer::{Answer, refusal};
use percent_encoding::percent_decode_str;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub method: String,
    /// Path and query as they arrived.
    pub target: String,
    /// Decoded.
    pub path: Vec<String>,
    query: Vec<(String, String)>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Call {
    pub(super) fn new(
        method: &str,
        target: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(decoded)
            .collect();
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (decoded(name), decoded(&value.replace('+', " ")))
        };
        let query = query
            .split('&')
            .filter(|text| !text.is_empty())
            .map(pair)
            .collect();
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            path,
            query,
            headers,
            body,
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
    /// A parameter of the query; names ignore case.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.query(name)?.parse().ok()
    }
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.query(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The body, which must be an object.
    pub(super) fn json(&self) -> Result<Value, Answer> {
        let value: Result<Value, _> = serde_json::from_slice(&self.body);
        let broken = || {
            refusal(
                400,
                "InvalidRequestContent",
                "The request content was invalid and could not be deserialized.",
            )
        };
        value.ok().filter(Value::is_object).ok_or_else(broken)
    }
    /// Its `properties`, which every resource has.
    pub(super) fn properties(&self) -> Result<Value, Answer> {
        let missing = || super::answer::invalid("The Properties field is required.");
        self.json()?
            .get("properties")
            .filter(|value| value.is_object())
            .cloned()
            .ok_or_else(missing)
    }
    /// The body, or null if it is empty.
    pub(super) fn json_or_empty(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
