//! A job that is put again. Mutable fields change; any other change is refused.

use super::answer::{Answer, immutable};
use super::document::Job;
use serde_json::{Map, Value};
use towline_host::clock;

const MUTABLE_FIELDS: [&str; 5] = [
    "description",
    "tags",
    "displayName",
    "properties",
    "isArchived",
];
/// Fields of the service that clients send back unchanged.
const SERVICE_FIELDS: [&str; 2] = ["status", "services"];
/// The defaults of absent fields.
const FIELD_DEFAULTS: [(&str, &str); 5] = [
    ("experimentName", "Default"),
    ("mode", "ReadWriteMount"),
    ("mode", "ReadOnlyMount"),
    ("jobLimitsType", "Command"),
    ("instanceCount", "1"),
];

pub(super) fn apply(job: &mut Job, asked: Value) -> Result<(), Answer> {
    let Value::Object(fields) = asked else {
        return Ok(());
    };
    let fixed = |name: &str| !MUTABLE_FIELDS.contains(&name) && !SERVICE_FIELDS.contains(&name);
    let changed: Vec<&str> = fields
        .iter()
        .filter(|(name, value)| fixed(name) && !same(name, &job.asked[name.as_str()], value))
        .map(|(name, _)| name.as_str())
        .collect();
    if !changed.is_empty() {
        let names: Vec<String> = changed.iter().map(|name| pascal(name)).collect();
        return Err(immutable(
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        ));
    }
    // Properties of a job can only be added.
    let property = |name: &str| job.asked["properties"].get(name);
    let another = fields
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|new| {
            new.iter()
                .any(|(name, value)| property(name).is_some_and(|old| old != value))
        });
    if another {
        return Err(immutable(&["Properties"]));
    }
    for (name, value) in fields {
        match name.as_str() {
            "properties" => merge(&mut job.asked["properties"], value),
            name if MUTABLE_FIELDS.contains(&name) => job.asked[name] = value,
            _ => {}
        }
    }
    job.changed = clock::now();
    Ok(())
}

/// Adds entries, and replaces those of the same name.
pub(super) fn merge(old: &mut Value, new: Value) {
    let Value::Object(new) = new else { return };
    if !old.is_object() {
        *old = serde_json::json!({});
    }
    for (name, value) in new {
        old[name] = value;
    }
}

/// Whether a new value is compatible with the old one. Absent, null and the default are equal.
fn same(name: &str, old: &Value, new: &Value) -> bool {
    match (old, new) {
        (_, Value::Null) => true,
        (Value::Null, Value::Object(_)) => same(name, &Value::Object(Map::new()), new),
        (Value::Null, Value::Array(new)) => new.is_empty(),
        (Value::Null, new) => {
            let text = new
                .as_str()
                .map_or_else(|| new.to_string(), ToOwned::to_owned);
            FIELD_DEFAULTS.contains(&(name, text.as_str()))
        }
        (Value::Object(old), Value::Object(new)) => {
            // The output that the service adds is not a change of outputs.
            let own = |key: &str| name == "outputs" && key == "default";
            // Only these maps lose an entry that is absent.
            let lost = ["inputs", "outputs", "environmentVariables"].contains(&name)
                && old.keys().any(|key| !new.contains_key(key));
            !lost
                && new.iter().all(|(key, value)| {
                    own(key)
                        || old.get(key).map_or_else(
                            || same(key, &Value::Null, value),
                            |old| same(key, old, value),
                        )
                })
        }
        (Value::String(old), Value::String(new)) if name == "uri" => {
            old.trim_end_matches('/') == new.trim_end_matches('/')
        }
        (old, new) => old == new,
    }
}

/// `codeId` as the service calls it when it refuses: `CodeId`.
fn pascal(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::same;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_a_change() {
        let asked = json!({"command": "x", "outputs": {"o": {"uri": "azureml://d/p"}}, "environmentVariables": {"A": "1"}});
        assert!(same("", &asked, &asked));
        assert!(same(
            "",
            &asked,
            &json!({"command": "x", "codeId": null, "outputs": {"o": {"uri": "azureml://d/p/", "mode": "ReadWriteMount"}, "default": {}}})
        ));
        for other in [
            json!({"command": "y"}),
            json!({"codeId": "c"}),
            json!({"environmentVariables": {}}),
            json!({"environmentVariables": {"A": "2"}}),
        ] {
            assert!(!same("", &asked, &other), "{other}");
        }
    }
}
