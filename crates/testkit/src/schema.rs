//! Checks a value against a JSON Schema, strictly: a key that the schema does not name is wrong,
//! unless the schema allows others. It knows the keywords that `schemars` writes and refuses others,
//! so that nothing goes unchecked.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keywords that describe or bound a value, and are not checked.
const UNCHECKED: [&str; 12] = [
    "$schema",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "pattern",
    "writeOnly",
];

/// The keys of an object that a schema names; all of them if it allows any.
enum Named {
    Keys(BTreeSet<String>),
    Any,
}

impl Named {
    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Keys(keys), Self::Keys(more)) => keys.extend(more),
            _ => *self = Self::Any,
        }
    }
}

/// A schema whose references lead to `#/$defs/` of a document.
pub(crate) struct Checker<'d>(pub(crate) &'d Value);

impl Checker<'_> {
    /// The first thing that is wrong with a value, by its path.
    pub(crate) fn check(&self, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        let named = self.named(schema, value, path)?;
        let (Named::Keys(keys), Value::Object(map)) = (named, value) else {
            return Ok(());
        };
        match map.keys().find(|key| !keys.contains(*key)) {
            Some(key) => Err(format!("{path}.{key}: the schema does not name it")),
            None => Ok(()),
        }
    }

    fn named(&self, schema: &Value, value: &Value, path: &str) -> Result<Named, String> {
        let schema = match schema {
            Value::Bool(true) => return Ok(Named::Any),
            Value::Object(schema) => schema,
            _ => return Err(format!("{path}: nothing is allowed here")),
        };
        let mut named = Named::Keys(BTreeSet::new());
        let mut is_bounded = false;
        for (keyword, rule) in schema {
            is_bounded |= !UNCHECKED.contains(&keyword.as_str());
            match keyword.as_str() {
                "$ref" => named.add(self.named(self.resolve(rule)?, value, path)?),
                "type" => check_type(rule, value, path)?,
                "const" => check_among(std::slice::from_ref(rule), value, path)?,
                "enum" => check_among(list(rule), value, path)?,
                "required" => check_required(list(rule), value, path)?,
                "properties" => named.add(self.properties(rule, value, path)?),
                "additionalProperties" | "unevaluatedProperties" => {
                    named.add(self.others(rule, schema, value, path)?);
                }
                "items" | "prefixItems" => self.items(keyword, rule, value, path)?,
                "allOf" => {
                    for branch in list(rule) {
                        named.add(self.named(branch, value, path)?);
                    }
                }
                "anyOf" | "oneOf" => named.add(self.branches(list(rule), value, path)?),
                known if UNCHECKED.contains(&known) => {}
                other => {
                    return Err(format!(
                        "{path}: `{other}` is a keyword that is not checked"
                    ));
                }
            }
        }
        Ok(if is_bounded { named } else { Named::Any })
    }

    fn resolve(&self, reference: &Value) -> Result<&Value, String> {
        let name = reference.as_str().unwrap_or_default();
        let found = name
            .strip_prefix("#/$defs/")
            .and_then(|name| self.0["$defs"].get(name));
        found.ok_or_else(|| format!("{name} leads nowhere"))
    }

    fn properties(&self, rule: &Value, value: &Value, path: &str) -> Result<Named, String> {
        let mut keys = BTreeSet::new();
        for (key, schema) in rule.as_object().into_iter().flatten() {
            if let Some(value) = value.get(key) {
                self.check(schema, value, &format!("{path}.{key}"))?;
            }
            keys.insert(key.clone());
        }
        Ok(Named::Keys(keys))
    }

    fn others(
        &self,
        rule: &Value,
        schema: &Map<String, Value>,
        value: &Value,
        path: &str,
    ) -> Result<Named, String> {
        if *rule == Value::Bool(false) {
            return Ok(Named::Keys(BTreeSet::new()));
        }
        let is_named = |key: &str| {
            let properties = schema.get("properties");
            properties.is_some_and(|properties| properties.get(key).is_some())
        };
        for (key, value) in value.as_object().into_iter().flatten() {
            if !is_named(key) {
                self.check(rule, value, &format!("{path}.{key}"))?;
            }
        }
        Ok(Named::Any)
    }

    fn items(&self, keyword: &str, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
        for (number, item) in value.as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}[{number}]");
            match (keyword, list(rule).get(number)) {
                ("items", _) => self.check(rule, item, &path)?,
                (_, Some(rule)) => self.check(rule, item, &path)?,
                _ => return Err(format!("{path}: there are too many")),
            }
        }
        Ok(())
    }

    /// At least one branch allows the value; every branch that does names keys.
    fn branches(&self, branches: &[Value], value: &Value, path: &str) -> Result<Named, String> {
        let mut named = None;
        let mut wrong = Vec::new();
        for branch in branches {
            match self.named(branch, value, path) {
                Ok(more) => named.get_or_insert(Named::Keys(BTreeSet::new())).add(more),
                Err(error) => wrong.push(error),
            }
        }
        named.ok_or_else(|| format!("({})", wrong.join(" or ")))
    }
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().map_or(&[], Vec::as_slice)
}

fn check_type(rule: &Value, value: &Value, path: &str) -> Result<(), String> {
    let is = |name: &Value| match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    if is(rule) || list(rule).iter().any(is) {
        Ok(())
    } else {
        Err(format!("{path}: {value} is not of type {rule}"))
    }
}

fn check_among(allowed: &[Value], value: &Value, path: &str) -> Result<(), String> {
    if allowed.contains(value) {
        Ok(())
    } else {
        Err(format!("{path}: {value} is not among {allowed:?}"))
    }
}

fn check_required(keys: &[Value], value: &Value, path: &str) -> Result<(), String> {
    let mut keys = keys.iter().filter_map(Value::as_str);
    match keys.find(|key| value.is_object() && value.get(key).is_none()) {
        Some(key) => Err(format!("{path}.{key} is missing")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::Checker;
    use serde_json::{Value, json};

    fn check(schema: &Value, value: &Value) -> Result<(), String> {
        let document = json!({ "$defs": { "Pair": {
            "type": "object",
            "properties": { "one": { "type": "string" }, "two": { "type": ["integer", "null"] } },
            "required": ["one"],
        } } });
        Checker(&document).check(schema, value, "")
    }

    #[track_caller]
    fn wrong(schema: &Value, value: &Value, why: &str) {
        let error = check(schema, value).expect_err("it is wrong");
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn keys_are_those_of_the_schema() {
        let pair = json!({ "$ref": "#/$defs/Pair", "description": "a pair" });
        assert_eq!(check(&pair, &json!({ "one": "x", "two": null })), Ok(()));
        assert_eq!(check(&pair, &json!({ "one": "x" })), Ok(()));
        wrong(&pair, &json!({ "two": 2 }), ".one is missing");
        wrong(&pair, &json!({ "one": "x", "three": 3 }), ".three");
        wrong(&pair, &json!({ "one": 1 }), "is not of type");
        wrong(&pair, &json!({ "one": "x", "two": 0.5 }), "is not of type");
        wrong(&pair, &json!([]), "is not of type");
    }

    #[test]
    fn lists_and_maps_are_looked_into() {
        let pairs = json!({ "type": "array", "items": { "$ref": "#/$defs/Pair" } });
        wrong(&pairs, &json!([{ "one": "x" }, { "four": 4 }]), "[1]");
        let tuple = json!({ "type": "array", "prefixItems": [{ "type": "string" }] });
        assert_eq!(check(&tuple, &json!(["x"])), Ok(()));
        wrong(&tuple, &json!(["x", "y"]), "too many");
        let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(check(&map, &json!({ "any": "x" })), Ok(()));
        wrong(&map, &json!({ "any": 1 }), ".any");
        let none = json!({ "type": "object", "additionalProperties": false });
        wrong(&none, &json!({ "any": 1 }), ".any");
    }

    #[test]
    fn keys_may_come_from_a_branch() {
        let tagged = json!({
            "type": "object",
            "properties": { "at": { "type": "integer" } },
            "oneOf": [
                { "properties": { "event": { "const": "begun" } }, "required": ["event"] },
                {
                    "properties": { "event": { "const": "ended" }, "code": { "type": "integer" } },
                    "required": ["event", "code"],
                },
            ],
        });
        let ended = json!({ "at": 1, "event": "ended", "code": 2 });
        assert_eq!(check(&tagged, &ended), Ok(()));
        let begun = json!({ "at": 1, "event": "begun", "code": 2 });
        wrong(&tagged, &begun, ".code: the schema does not name it");
        wrong(
            &tagged,
            &json!({ "at": 1, "event": "other" }),
            "is not among",
        );
        let optional = json!({ "anyOf": [{ "$ref": "#/$defs/Pair" }, { "type": "null" }] });
        assert_eq!(check(&optional, &Value::Null), Ok(()));
        wrong(&optional, &json!(1), "is not of type");
    }

    #[test]
    fn what_cannot_be_checked_is_wrong() {
        wrong(&json!({ "not": true }), &json!("x"), "`not`");
        wrong(&json!({ "$ref": "#/$defs/None" }), &json!(1), "nowhere");
        wrong(&json!({ "enum": ["a"] }), &json!("b"), "is not among");
        assert_eq!(check(&json!(true), &json!({ "any": 1 })), Ok(()));
        assert_eq!(check(&json!({}), &json!({ "any": 1 })), Ok(()));
    }
}
